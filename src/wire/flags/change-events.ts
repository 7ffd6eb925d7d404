// The change stream as text: server-sent events that say that definitions changed, never what they are now, and how the
// bulk answer of OFREP tells of the stream. Source: docs/wire/ofrep.md 5.

import { createHash } from 'node:crypto'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { RequestHeaders } from '../address/client-address.ts'
import type { RawQuery } from './decide-query.ts'
import { ofrepKeyOf } from './ofrep-request.ts'

export const changeStreamPath = '/ofrep/v1/events'
/** How long a client waits before it connects again, ms: enough for a restart not to be met by everybody at once. */
const retryMs = 3_000
/** A page in the background lets go of its connection after this. */
const inactivityDelaySec = 120

/**
 * Names a state of a project's definitions, the same on every front. Not the revision itself: that counts the writes of all
 * projects, and a public key is to learn of its own alone; the uuid is known to nobody who could undo this.
 */
export function changeTag(projectUuid: string, revision: number): string {
  return createHash('sha256').update(`${projectUuid} ${revision}`).digest('base64url').slice(0, 22)
}

/** The first bytes of a stream. The id, without data, is what a client sends back as `Last-Event-ID` when it comes again. */
export function encodeStreamStart(tag: string): string {
  return `retry: ${retryMs}\nid: ${tag}\n\n`
}

/** Without an `event` field it is a `message`, the only kind that every client library can listen for. */
export function encodeChange(tag: string): string {
  return `id: ${tag}\ndata: {"type":"refetchEvaluation","etag":"${tag}"}\n\n`
}

/** A comment: keeps proxies from closing what looks idle. */
export const streamHeartbeat = ':\n\n'

/** Browsers cannot set headers on a stream: `token` in the address is taken as well. '' without a key. */
export function streamKeyOf(headers: RequestHeaders, query: RawQuery): string {
  const key = ofrepKeyOf(headers)
  if (key !== '') return key
  const token = query.token ?? query.api_key
  return typeof token === 'string' ? token : ''
}

/** The header of a client that comes again; browsers that polyfill streams send it in the address. */
export function lastEventIdOf(headers: RequestHeaders, query: RawQuery): string | null {
  const sent = headers['last-event-id'] ?? query.lastEventId
  return typeof sent === 'string' && sent !== '' ? sent : null
}

/** The tag that a change event told of, as the client sends it back when it asks again; null when it does not. */
export function tagHeardOf({ flagConfigEtag }: RawQuery): string | null {
  return typeof flagConfigEtag === 'string' && flagConfigEtag !== '' ? flagConfigEtag : null
}

/** A path that a proxy cut off before it handed the request on. Anything else would be an address of somebody's choosing. */
const prefixForm = /^(?:\/[\w.~-]{1,100}){1,8}$/

/**
 * The field of the bulk answer, with its comma. The address has no origin, so that clients take the one they ask already.
 */
export function encodeEventStreams({ project }: CompiledProject, headers: RequestHeaders): string {
  const forwarded = headers['x-forwarded-prefix']
  const prefix = typeof forwarded === 'string' && prefixForm.test(forwarded) ? forwarded : ''
  const requestUri = `${prefix}${changeStreamPath}?token=${encodeURIComponent(project.apiToken)}`
  return `,"eventStreams":${JSON.stringify([{ type: 'sse', endpoint: { requestUri }, inactivityDelaySec }])}`
}
