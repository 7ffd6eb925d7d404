// Measures how far the worker lags: for the metrics, and for fronts that limit how much of a project may wait.

import type { LogStream, Traffic } from '#core/events/log-stream.ts'
import type { ProcessedUntil } from '#core/events/processed-until.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { StreamCursors } from './stream-cursors.ts'

interface StreamLag {
  readonly deferredProjects: readonly number[]
  /** Everything appended before this time (epoch ms) is processed, except records of deferred projects. */
  readonly untilMs: number
  /** Records of deferred projects that were appended before this time (epoch ms) are processed. */
  readonly deferredUntilMs: number
  readonly isAtEnd: boolean
}

export function createLagMeter(options: {
  readonly log: Pick<EventLogReader, 'readStreamStatus'>
  readonly cursors: StreamCursors
  readonly clock: Clock
  readonly metrics: Metrics
  readonly onProcessedUntil: ((traffic: Traffic, until: ProcessedUntil) => void) | undefined
}) {
  const { log, cursors, clock, metrics, onProcessedUntil } = options
  /**
   * Streams reported as processed to their end. It starts empty, so that each stream is reported at the start: an import may
   * wait for live events for a long time before its stream has a turn.
   */
  const reportedToTheEnd = new Set<LogStream>()

  async function measure(): Promise<void> {
    const streams = cursors.all.filter(({ takesDeferred }) => !takesDeferred)
    for (const [traffic, parts] of Map.groupBy(streams, cursor => cursor.traffic)) {
      const lags: StreamLag[] = []
      for (const { stream } of parts) {
        const lag = await measureStream(stream)
        if (lag !== null) lags.push(lag)
      }
      if (lags.length < parts.length || parts.every(({ stream }) => reportedToTheEnd.has(stream))) continue
      parts.forEach(({ stream }, index) => {
        if (lags[index]!.isAtEnd) reportedToTheEnd.add(stream)
      })
      const projectIds = lags.flatMap(lag => lag.deferredProjects)
      const appendedBeforeMs = Math.min(...lags.map(lag => lag.deferredUntilMs))
      onProcessedUntil?.(traffic, {
        appendedBeforeMs: Math.min(...lags.map(lag => lag.untilMs)),
        deferred: projectIds.length === 0 ? null : { projectIds, appendedBeforeMs },
      })
    }
  }

  /** @returns null if the lag is currently unknown. */
  async function measureStream(stream: LogStream): Promise<StreamLag | null> {
    const first = cursors.all.find(cursor => cursor.name === stream)!
    const offset = cursors.positionOf(first)
    const doneOffset = cursors.doneOffset(stream)
    const deferredProjects = cursors.deferredProjects(stream)
    if (offset === undefined || doneOffset === undefined) return null
    try {
      const lookedAtMs = clock.nowMs()
      const done = await log.readStreamStatus(stream, doneOffset)
      const taken = offset === doneOffset ? done : await log.readStreamStatus(stream, offset)
      metrics.logLagRecords.set({ stream }, Math.max(0, done.endOffset - doneOffset))
      const lagMs = done.appendedAtMs === null ? 0 : clock.nowMs() - done.appendedAtMs
      metrics.logLagSeconds.set({ stream }, Math.max(0, lagMs) / 1000)
      return {
        deferredProjects,
        untilMs: taken.appendedAtMs ?? lookedAtMs,
        deferredUntilMs: done.appendedAtMs ?? lookedAtMs,
        isAtEnd: done.appendedAtMs === null,
      }
    } catch (cause) {
      if (!(cause instanceof PortError)) throw cause
      metrics.dependencyFailures.inc({ port: cause.port, code: cause.code })
      return null
    }
  }

  return {
    /** Call after a commit to the stream, so that its progress is reported again. */
    noteCommitted: (stream: LogStream) => void reportedToTheEnd.delete(stream),
    measure,
  }
}
