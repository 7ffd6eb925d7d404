// What becomes of an error of a store while something is accepted: the client is told to send it again, it is counted, and the
// log has a line of it now and then.

import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { occasionally } from '#telemetry/occasionally.ts'

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
  const atRefusal = occasionally(nowMs)
  return error => {
    if (!(error instanceof PortError) || error.code === 'conflict' || error.code === 'corrupt') throw error
    metrics.dependencyFailures.inc({ port: error.port, code: error.code })
    atRefusal(times =>
      logger.error({ err: error, times }, `${what} cannot be accepted; clients are told to send them again`),
    )
    // What an operator has to see to: the setting is named to whoever asks, too.
    const reason = error.code === 'full' && error.cause instanceof Error ? error.cause.message : null
    return { kind: 'unavailable', ...(reason !== null && { reason }) }
  }
}
