// Reports OpenTelemetry data, which is parsed but not stored: the project gets a warning, and `/metrics` counts the data.

import { truncateForWarning } from '#core/events/warning-types.ts'
import type { Project } from '#core/project.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { RefusedCounter } from './refused-counter.ts'

export type OtlpService = ReturnType<typeof createOtlpService>

export function createOtlpService(options: {
  readonly findProject: (token: string) => Project | null
  /** `accept`: requests of unknown keys are answered like others. */
  readonly unknownKeys: 'reject' | 'accept'
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly metrics: Metrics
}) {
  const { findProject, unknownKeys, refused, metrics } = options
  return {
    /** Whether requests with this key are answered like those of a project. */
    admits: (token: string) => unknownKeys === 'accept' || findProject(token) !== null,
    /** @param sent `count` items of the service `service`. */
    note(token: string, sent: { readonly signal: string; readonly count: number; readonly service: string | null }) {
      const { signal, count, service } = sent
      const project = findProject(token)
      if (count === 0 || project === null) return
      metrics.otlpItems.inc({ signal }, count)
      const createDetails = () => ({ signal, count, service: service === null ? null : truncateForWarning(service) })
      refused.count(project.id, 'otlp_not_stored', count, createDetails)
    },
  }
}
