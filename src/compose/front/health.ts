// Composes readiness and metrics of a front: whether its parts work, and its metrics together with those of the other
// processes.

import type { Config } from '#config.ts'
import { createMetricsRoute, type HealthDeps, healthRoutes } from '#http/handlers/health.ts'
import type { Route } from '#http/shared/route.ts'
import type { EventLogReader, EventLogRetention, LogCondition } from '#ports/log/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { aggregateMetrics, type Metrics } from '#telemetry/metrics.ts'
import type { HealthParts } from './parts.ts'

/** `metricsRoute` is separate, because only the port of the private API has it. */
export function composeHealth(parts: HealthParts): { routes: readonly Route[]; metricsRoute: Route } {
  const deps = createHealthDeps(parts)
  return { routes: healthRoutes(deps), metricsRoute: createMetricsRoute(deps) }
}

function createHealthDeps({ config, definitions, stores, counters, eventLog, metrics, host }: HealthParts): HealthDeps {
  const { state, logReader, logSpace } = stores
  return {
    readiness: async () => {
      const lostCount = await countLost(logReader)
      const condition = eventLog.getCondition()
      const stateMissing = state.missing()
      return {
        flags: definitions.isServing() ? 'ok' : 'definitions_not_loaded',
        capture: toCaptureCode(condition, config),
        processing: stateMissing === null ? host.processingState() : 'state_files_removed',
        events: toEventsCode(host.isEventStoreUnavailable(), counters.missingEvents.spanCount()),
        ...(condition.state === 'imports_full'
          ? { imports_refused: condition.reason }
          : condition.state !== 'ok' && { capture_reason: condition.reason }),
        ...(state.isReplicaDown() && { read_replica: 'unavailable' }),
        ...(stateMissing !== null && { processing_reason: stateMissing }),
        ...(lostCount > 0 && { lost_records: lostCount }),
      }
    },
    metricsText: async () => {
      if (logSpace !== null) await exportLogSpace(logSpace, metrics)
      const own = await metrics.registry.getMetricsAsJSON()
      return aggregateMetrics([own, ...(await host.otherMetrics(own))])
    },
  }
}

function toEventsCode(isUnavailable: boolean, missingSpanCount: number): string {
  if (isUnavailable) return 'event_store_unavailable'
  return missingSpanCount === 0 ? 'ok' : 'rows_missing'
}

/**
 * How many records are lost. 0 while the disk does not answer, since the losses are unknown then; `capture` reports the
 * disk.
 */
async function countLost(log: Pick<EventLogReader, 'countLostRecords'>): Promise<number> {
  try {
    return await log.countLostRecords()
  } catch (error) {
    if (error instanceof PortError) return 0
    throw error
  }
}

/** If measuring fails, the metrics keep their last values, and a failure of the log is counted. */
async function exportLogSpace(log: Pick<EventLogRetention, 'measureSpace'>, metrics: Metrics): Promise<void> {
  try {
    const { bytes, bytesMax, freeBytes } = await log.measureSpace()
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

/** The code that readiness shows for the log's condition. */
function toCaptureCode({ state }: LogCondition, { importOnly }: Config): string {
  if (importOnly && state === 'imports_full') return captureCodes.full
  if (importOnly && state === 'ok') return 'import_only'
  return state === 'ok' ? 'ok' : captureCodes[state]
}
