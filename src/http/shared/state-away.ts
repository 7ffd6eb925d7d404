// The line of the log for requests that cannot be answered because the state cannot be reached, or is asked for too much.

import type { FastifyRequest } from 'fastify'
import type { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { occasionally } from '#telemetry/occasionally.ts'

/** Notes a request that failed so. */
export type NoteStateAway = (error: PortError, request: Pick<FastifyRequest, 'id' | 'routeOptions'>) => void

/**
 * One line a minute for all routes together, with how many requests failed: whoever sends made-up keys can make them fail.
 * @param monotonicNowMs milliseconds from any start that never jump back.
 */
export function createStateAwayNote(logger: Logger, monotonicNowMs: () => number): NoteStateAway {
  const atFailure = occasionally(monotonicNowMs)
  return (error, { id: requestId, routeOptions }) =>
    atFailure(times =>
      logger.warn({ err: error, times, requestId, path: routeOptions.url }, 'the state cannot be reached'),
    )
}
