// The id by which an answer, the log lines about it and the caller's own records are matched: the caller's `X-Request-Id`
// where it is one, else a new UUID. It comes back as `X-Request-Id` on every answer.

import type { IncomingMessage } from 'node:http'

export const requestIdHeader = 'x-request-id'

/** What proxies and platforms send: UUIDs, hexadecimal digits, base64. Nothing that could break a header or a log line. */
const wellFormed = /^[\w.:+/=@-]{1,128}$/

/** For Fastify, as its `genReqId`. @param newUuid a version-4 UUID. Source: ours. */
export function requestIdMaker(newUuid: () => string): (request: IncomingMessage) => string {
  return ({ headers }) => {
    const sent = headers[requestIdHeader]
    return typeof sent === 'string' && wellFormed.test(sent) ? sent : newUuid()
  }
}
