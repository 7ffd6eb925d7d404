// What a front says of itself: whether its parts work, and its numbers beside those of the other processes.

import type { HealthDeps } from '#http/handlers/health.ts'
import type { EventLogHealth, EventLogReader, LogCondition } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { aggregateMetrics, type Metrics } from '#telemetry/metrics.ts'
import type { MetricsSnapshot } from '#telemetry/process-numbers.ts'
import type { Config } from '../config.ts'

export function composeHealth(deps: {
  readonly config: Config
  readonly definitions: { isServing(): boolean }
  readonly state: { isReplicaDown(): boolean; missing(): string | null }
  /** Null when a test has put another log in its place. */
  readonly ownLog: EventLogHealth | null
  readonly logReader: Pick<EventLogReader, 'lostCount' | 'room'>
  /** Spans of events that the event store lost. */
  readonly missingEvents: { spanCount(): number }
  readonly metrics: Metrics
  readonly host: {
    processingState(): string
    isEventStoreAway(): boolean
    otherMetrics(own: MetricsSnapshot): Promise<readonly MetricsSnapshot[]>
  }
}): HealthDeps {
  const { config, definitions, state, ownLog, logReader, missingEvents, metrics, host } = deps
  return {
    readiness: async () => {
      const lostCount = await countLost(logReader)
      const condition = ownLog?.condition() ?? { state: 'ok' }
      const stateMissing = state.missing()
      return {
        flags: definitions.isServing() ? 'ok' : 'definitions_not_loaded',
        capture: captureState(condition, config),
        processing: stateMissing === null ? host.processingState() : 'state_files_removed',
        events: eventsState(host.isEventStoreAway(), missingEvents.spanCount()),
        ...(condition.state === 'imports_full'
          ? { imports_refused: condition.reason }
          : condition.state !== 'ok' && { capture_reason: condition.reason }),
        ...(state.isReplicaDown() && { read_replica: 'unavailable' }),
        ...(stateMissing !== null && { processing_reason: stateMissing }),
        ...(lostCount > 0 && { lost_records: lostCount }),
      }
    },
    metricsText: async () => {
      await measureRoom(logReader, metrics)
      const own = await metrics.registry.getMetricsAsJSON()
      return aggregateMetrics([own, ...(await host.otherMetrics(own))])
    },
  }
}

function eventsState(isAway: boolean, missingSpanCount: number): string {
  if (isAway) return 'event_store_unavailable'
  return missingSpanCount === 0 ? 'ok' : 'rows_missing'
}

/** 0 while the disk does not answer, which `capture` reports: the losses are not known then. */
async function countLost(log: Pick<EventLogReader, 'lostCount'>): Promise<number> {
  try {
    return await log.lostCount()
  } catch (error) {
    if (error instanceof PortError) return 0
    throw error
  }
}

/** What could not be measured keeps its last figure, and counts as a failure of the log. */
async function measureRoom(log: Pick<EventLogReader, 'room'>, metrics: Metrics): Promise<void> {
  try {
    const { bytes, bytesMax, freeBytes } = await log.room()
    metrics.logBytes.set(bytes)
    metrics.logBytesMax.set(bytesMax)
    metrics.diskFreeBytes.set(freeBytes)
  } catch (error) {
    if (!(error instanceof PortError)) throw error
    metrics.dependencyFailures.inc({ port: error.port, code: error.code })
  }
}

const captureCodes = {
  full: 'log_or_disk_full',
  imports_full: 'ok',
  files_gone: 'log_files_removed',
  unavailable: 'log_unavailable',
} as const satisfies Record<Exclude<LogCondition['state'], 'ok'>, string>

/** What readiness says: a code, not the adapter's word. */
function captureState({ state }: LogCondition, { importOnly }: Config): string {
  if (importOnly && state === 'imports_full') return captureCodes.full
  if (importOnly && state === 'ok') return 'import_only'
  return state === 'ok' ? 'ok' : captureCodes[state]
}
