// Puts refused input into the log, so that its project can list it. The amount is limited, so that a broken client cannot
// fill the log with useless data; the rest is only counted. No request waits for this.

import type { RefusedItem } from '#core/capture/incoming-event.ts'
import { truncateRefusedItem } from '#core/capture/reject-body.ts'
import { importWithoutJob, type Lane, type RejectedBody } from '#core/events/captured-event.ts'
import { RecordEncoder } from '#core/log/record-codec.ts'
import type { Project } from '#core/project.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { RefusedCounter } from './refused-counter.ts'

export interface RejectRecorderOptions {
  readonly findProject: (token: string) => Project | null
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly eventLog: EventLogAppender
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
}

/** A request that was refused before its events were read. */
export interface RefusedInput {
  /** The key that the request seems to name, untrimmed; null if there is none. */
  readonly token: string | null
  /** A code of docs/wire/errors.md. */
  readonly reason: string
  readonly field: string
  /** The sent body, truncated for the reject store. */
  readonly body: RejectedBody
  /** How many events the request has, if they could be counted. */
  readonly eventCount?: number
  /** The request's only event; absent when it has several events, or when nothing could be read. */
  readonly item?: RefusedItem
  /** Whether the request declares itself an import. */
  readonly historicalMigration?: boolean
  /** The lane that the request would have gone to, if its path alone decides that. */
  readonly lane?: Lane
}

/** How many refused events and requests a project may have stored per second. */
const rejectsPerSecondMax = 100
const trackedProjectCountMax = 10_000

export type RejectRecorder = ReturnType<typeof createRejectRecorder>

export function createRejectRecorder(options: RejectRecorderOptions) {
  const { eventLog, clock, refused } = options
  const take = createRejectLimiter()

  return {
    /** How many of `count` rejects may be stored now. */
    grant: (projectId: number, count: number) => take(projectId, count, clock.nowMs()),
    keep,
    /** Like `keep`, for a key that may not belong to any project. */
    keepForKey(token: string, input: RefusedInput, receivedAtMs: number) {
      const project = options.findProject(token.trim())
      if (project !== null) keep(project, input, receivedAtMs)
    },
    /** Counts events that are not kept, for a key that may not belong to any project. */
    countForKey(token: string, reason: string, count: number) {
      const project = options.findProject(token.trim())
      if (project !== null) refused.count(project.id, reason, count)
    },
  }

  /**
   * Counts a refused request and stores it, in the background; a request that the log does not accept is counted instead.
   */
  function keep(project: Project, input: RefusedInput, receivedAtMs: number): void {
    const { reason, body, eventCount = 1, item = unreadItem, historicalMigration = false } = input
    const granted = take(project.id, 1, clock.nowMs())
    refused.count(project.id, reason, eventCount - granted)
    if (granted === 0) return
    const lane = historicalMigration ? 'historical' : 'main'
    const encoder = new RecordEncoder()
    encoder.addReject({
      projectId: project.id,
      token: project.apiToken,
      lane: input.lane ?? lane,
      historicalMigration,
      importJobId: historicalMigration ? importWithoutJob : 0,
      receivedAtMs,
      capturedAtMs: receivedAtMs,
      reason,
      field: input.field,
      ...truncateRefusedItem(item),
      ...(typeof body === 'string' ? { body } : { body: body.text, source: body.source }),
    })
    eventLog.append(historicalMigration ? 'import' : 'live', encoder.finish()).catch(error => {
      refused.count(project.id, reason, 1)
      countFailure(error, options)
    })
  }
}

/** Counts per project in windows of one second. @returns a function that tells how many of `count` may be stored now. */
export function createRejectLimiter() {
  const windows = new Map<number, { second: number; taken: number }>()
  return (projectId: number, count: number, nowMs: number): number => {
    const second = Math.floor(nowMs / 1000)
    let window = windows.get(projectId)
    if (window === undefined || window.second !== second) {
      if (windows.size >= trackedProjectCountMax) windows.clear()
      window = { second, taken: 0 }
      windows.set(projectId, window)
    }
    const granted = Math.min(count, rejectsPerSecondMax - window.taken)
    window.taken += granted
    return granted
  }
}

const unreadItem: RefusedItem = { uuid: '', name: '', distinctId: '' }

function countFailure(error: unknown, { metrics, logger }: Pick<RejectRecorderOptions, 'metrics' | 'logger'>): void {
  const known = error instanceof PortError
  metrics.dependencyFailures.inc({ port: known ? error.port : 'unknown', code: known ? error.code : 'unavailable' })
  if (!known) logger.error({ err: error }, 'cannot store a rejected request')
}
