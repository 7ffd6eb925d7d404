// The id that links an answer, its log lines and the caller's records: the caller's `X-Request-Id` if it is well-formed,
// otherwise a new UUID. Every answer returns it as `X-Request-Id`.

import type { IncomingMessage } from 'node:http'

export const requestIdHeader = 'x-request-id'

/**
 * Matches what proxies and platforms send (UUIDs, hexadecimal, base64), and nothing that breaks a header or log line.
 */
const wellFormed = /^[\w.:+/=@-]{1,128}$/

/** Makes Fastify's `genReqId`. @param newUuid returns a version-4 UUID. Source: ours. */
export function createRequestIdMaker(newUuid: () => string): (request: IncomingMessage) => string {
  return ({ headers }) => {
    const sent = headers[requestIdHeader]
    return typeof sent === 'string' && wellFormed.test(sent) ? sent : newUuid()
  }
}
