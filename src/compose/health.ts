// What a front says of itself: whether its parts work, and its numbers beside those of the other processes.

import type { HealthDeps } from '#http/handlers/health.ts'
import type { EventLogHealth, LogCondition } from '#ports/event-log.ts'
import { aggregateMetrics, type Metrics } from '#telemetry/metrics.ts'
import type { MetricsSnapshot } from '#telemetry/process-numbers.ts'
import type { Config } from '../config.ts'

export function composeHealth(deps: {
  readonly config: Config
  readonly definitions: { isServing(): boolean }
  /** Null: the log is another's. */
  readonly ownLog: EventLogHealth | null
  readonly metrics: Metrics
  readonly host: {
    processingState(): string
    otherMetrics(own: MetricsSnapshot): Promise<readonly MetricsSnapshot[]>
  }
}): HealthDeps {
  const { config, definitions, ownLog, metrics, host } = deps
  return {
    readiness: () => {
      const condition = ownLog?.condition() ?? { state: 'ok' }
      return {
        flags: definitions.isServing() ? 'ok' : 'definitions_not_loaded',
        capture: captureState(condition, config),
        processing: host.processingState(),
        ...(condition.state !== 'ok' && { capture_reason: condition.reason }),
      }
    },
    metricsText: async () => {
      const own = await metrics.registry.getMetricsAsJSON()
      return aggregateMetrics([own, ...(await host.otherMetrics(own))])
    },
  }
}

const captureCodes = {
  full: 'log_or_disk_full',
  files_gone: 'log_files_removed',
  unavailable: 'log_unavailable',
} as const satisfies Record<Exclude<LogCondition['state'], 'ok'>, string>

/** What readiness says: a code, not the adapter's word. */
function captureState({ state }: LogCondition, { importOnly }: Config): string {
  if (state !== 'ok') return captureCodes[state]
  return importOnly ? 'import_only' : 'ok'
}
