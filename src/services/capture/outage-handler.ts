// Handles a store's error while a request is accepted: the client is asked to retry, the error is counted, and a line
// is logged now and then.

import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { createLogLimiter } from '#telemetry/log-limiter.ts'
import type { Metrics } from '#telemetry/metrics.ts'

export interface Unavailable {
  readonly kind: 'unavailable'
  /** The setting whose limit is reached. */
  readonly reason?: string
}

/**
 * @param options `what` names, in the plural, what cannot be accepted; `nowMs` limits how often a line is logged.
 * @returns a handler of errors. The handler rethrows errors that a retry does not fix: damage, conflicts, and any error
 * that is not a `PortError`.
 */
export function createOutageHandler(options: {
  readonly what: string
  readonly nowMs: () => number
  readonly metrics: Metrics
  readonly logger: Logger
}): (error: unknown) => Unavailable {
  const { what, nowMs, metrics, logger } = options
  const atRefusal = createLogLimiter(nowMs)
  return error => {
    if (!(error instanceof PortError) || error.code === 'conflict' || error.code === 'corrupt') throw error
    metrics.dependencyFailures.inc({ port: error.port, code: error.code })
    atRefusal(times => logger.error({ err: error, times }, `cannot accept ${what}; clients are asked to retry`))
    // An operator must act on a full log, so the answer names the setting, too. The log's error message is written for
    // clients; the messages of other stores may name files of this machine.
    const isOfLog = error.port === 'event-log' && error.code === 'full'
    const reason = isOfLog && error.cause instanceof Error ? error.cause.message : null
    return { kind: 'unavailable', ...(reason !== null && { reason }) }
  }
}
