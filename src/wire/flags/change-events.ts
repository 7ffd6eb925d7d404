// The change stream as text: server-sent events that say that definitions changed, but not what they are now. Also makes
// the field of OFREP's bulk answer that names the stream. Source: docs/wire/ofrep.md 5.

import { createHash } from 'node:crypto'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { RequestHeaders } from '../address/client-address.ts'
import type { RawDecideQuery } from './decide-query.ts'
import { readOfrepApiKey } from './ofrep-request.ts'

export const changeStreamPath = '/ofrep/v1/events'
/** How long a client waits before it reconnects, ms: long enough that not all clients meet a restart at once. */
const retryMs = 3_000
/** A page in the background closes its connection after this time. */
const inactivityDelaySec = 120

/**
 * Names a state of a project's definitions, the same on every front. It is not the revision itself, which counts the
 * writes of all projects: holders of a public key should learn only about writes of their project. They cannot reverse
 * the hash, since they do not know the uuid.
 */
export function computeChangeTag(projectUuid: string, revision: number): string {
  return createHash('sha256').update(`${projectUuid} ${revision}`).digest('base64url').slice(0, 22)
}

/**
 * The first bytes of a stream: an event that has an id but no data. A client that reconnects sends this id as
 * `Last-Event-ID`.
 */
export function encodeStreamStart(tag: string): string {
  return `retry: ${retryMs}\nid: ${tag}\n\n`
}

/** A change has no `event` field, so it is a `message`, the only kind that every client library can listen for. */
export function encodeChangeEvent(tag: string): string {
  return `id: ${tag}\ndata: {"type":"refetchEvaluation","etag":"${tag}"}\n\n`
}

/** A comment, which keeps proxies from closing a connection that looks idle. */
export const streamHeartbeat = ':\n\n'

/** The key; '' when absent. `token` in the address counts too, because browsers cannot set headers on a stream. */
export function readStreamApiKey(headers: RequestHeaders, query: RawDecideQuery): string {
  const key = readOfrepApiKey(headers)
  if (key !== '') return key
  const token = query.token ?? query.api_key
  return typeof token === 'string' ? token : ''
}

/** The `Last-Event-ID` of a client that reconnects; polyfills in browsers send it in the address. */
export function lastEventIdOf(headers: RequestHeaders, query: RawDecideQuery): string | null {
  const sent = headers['last-event-id'] ?? query.lastEventId
  return typeof sent === 'string' && sent !== '' ? sent : null
}

/** The tag of the change event that made the client ask again; null when it sends none. */
export function readChangeEventTag({ flagConfigEtag }: RawDecideQuery): string | null {
  return typeof flagConfigEtag === 'string' && flagConfigEtag !== '' ? flagConfigEtag : null
}

/** The form of a path that a proxy stripped. Other text is not accepted, since a client could then choose any address. */
const prefixForm = /^(?:\/[\w.~-]{1,100}){1,8}$/

/**
 * The field of the bulk answer, with its comma. The address has no origin, so clients use the origin to which they already
 * send requests.
 */
export function encodeEventStreams({ project }: CompiledProject, headers: RequestHeaders): string {
  const forwarded = headers['x-forwarded-prefix']
  const prefix = typeof forwarded === 'string' && prefixForm.test(forwarded) ? forwarded : ''
  const requestUri = `${prefix}${changeStreamPath}?token=${encodeURIComponent(project.apiToken)}`
  return `,"eventStreams":${JSON.stringify([{ type: 'sse', endpoint: { requestUri }, inactivityDelaySec }])}`
}
