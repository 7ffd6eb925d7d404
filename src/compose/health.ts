// What a front says of itself: whether its parts work, and its numbers beside those of the other processes.

import type { SqliteLogWriter } from '#adapters/sqlite-log/sqlite-log-writer.ts'
import type { HealthDeps } from '#http/handlers/health.ts'
import { aggregateMetrics, type Metrics } from '#telemetry/metrics.ts'
import type { MetricsSnapshot } from '#telemetry/process-numbers.ts'
import type { Config } from '../config.ts'

export function composeHealth(deps: {
  readonly config: Config
  readonly definitions: { isServing(): boolean }
  /** Null: the log is another's. */
  readonly ownLog: Pick<SqliteLogWriter, 'condition'> | null
  readonly metrics: Metrics
  readonly host: {
    processingState(): string
    otherMetrics(own: MetricsSnapshot): Promise<readonly MetricsSnapshot[]>
  }
}): HealthDeps {
  const { config, definitions, ownLog, metrics, host } = deps
  return {
    readiness: () => ({
      flags: definitions.isServing() ? 'ok' : 'definitions_not_loaded',
      capture: captureState(ownLog?.condition() ?? 'ok', config),
      processing: host.processingState(),
    }),
    metricsText: async () => {
      const own = await metrics.registry.getMetricsAsJSON()
      return aggregateMetrics([own, ...(await host.otherMetrics(own))])
    },
  }
}

/** What readiness says: a code, not the adapter's word. */
function captureState(condition: 'ok' | 'full' | 'unavailable', { importOnly }: Config): string {
  if (condition !== 'ok') return condition === 'full' ? 'log_or_disk_full' : 'log_unavailable'
  return importOnly ? 'import_only' : 'ok'
}
