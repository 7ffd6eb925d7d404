// What becomes of an error of a store while something is accepted: the client is told to send it again, it is counted, and the
// log has a line of it now and then.

import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'

/** One line per this long while a store refuses; the counters tell the rest. */
const complaintPauseMs = 60_000

export interface Unavailable {
  readonly kind: 'unavailable'
  /** Which limit is reached, by the name of its setting. */
  readonly reason?: string
}

/**
 * @param of `what`: what cannot be accepted, in the plural; `nowMs`: for how often a line is logged.
 * @returns asked of each error. It throws what sending again does not mend: damage, a conflict, what no port has thrown.
 */
export function createUnavailable(of: {
  readonly what: string
  readonly nowMs: () => number
  readonly metrics: Metrics
  readonly logger: Logger
}): (error: unknown) => Unavailable {
  const { what, nowMs, metrics, logger } = of
  let complaintFromMs = Number.NEGATIVE_INFINITY
  return error => {
    if (!(error instanceof PortError) || error.code === 'conflict' || error.code === 'corrupt') throw error
    metrics.dependencyFailures.inc({ port: error.port, code: error.code })
    const failedAtMs = nowMs()
    if (failedAtMs >= complaintFromMs) {
      complaintFromMs = failedAtMs + complaintPauseMs
      logger.error({ err: error }, `${what} cannot be accepted; clients are told to send them again`)
    }
    // What an operator has to see to: the setting is named to whoever asks, too.
    const reason = error.code === 'full' && error.cause instanceof Error ? error.cause.message : null
    return { kind: 'unavailable', ...(reason !== null && { reason }) }
  }
}
