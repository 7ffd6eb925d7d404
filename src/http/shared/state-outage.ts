// Logs requests that fail because the state cannot be reached, is overloaded, or has refused their write.

import type { FastifyRequest } from 'fastify'
import type { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { createLogLimiter } from '#telemetry/log-limiter.ts'

/** Records a request that failed because of the state. */
export type LogStateOutage = (error: PortError, request: Pick<FastifyRequest, 'id' | 'routeOptions'>) => void

/**
 * Logs one line a minute for all routes together, with the number of failed requests: any client can cause failures by
 * sending made-up keys.
 * @param monotonicNowMs milliseconds since an arbitrary start; never jumps back.
 */
export function createStateOutageLogger(logger: Logger, monotonicNowMs: () => number): LogStateOutage {
  const atFailure = createLogLimiter(monotonicNowMs)
  return (error, { id: requestId, routeOptions }) =>
    atFailure(times =>
      logger.warn(
        { err: error, times, requestId, path: routeOptions.url },
        error.code === 'conflict' ? 'state write conflict with concurrent writers' : 'the state store is unavailable',
      ),
    )
}
