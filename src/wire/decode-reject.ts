// Reads the body of a stored reject as it was read when it arrived.

import { isAscii } from 'node:buffer'
import type { IncomingRequest } from '#core/events/incoming-event.ts'
import type { RejectedEvent } from '#core/events/stored-event.ts'
import { captureValueCountMax } from './capture-errors.ts'
import { parseCaptureRequest } from './capture-request.ts'
import { parseItemisedRequest } from './itemised-request.ts'

/** Why a reject cannot be read again; docs/wire/errors.md lists these beside the codes of capture. */
export type UnreadableReject = 'body_cut' | 'body_unknown'

export type DecodedReject =
  | { readonly kind: 'request'; readonly request: IncomingRequest }
  | { readonly kind: 'refused'; readonly reason: string; readonly field: string }
  | { readonly kind: 'unreadable'; readonly reason: UnreadableReject }

/** Stands for a key in bodies that had theirs in the address or a form: whose a reject is, is known. */
const keyOfNobody = 'replay'

/** @param itemised bad events of a request leave the others alone. */
export function decodeReject(reject: RejectedEvent, itemised: boolean): DecodedReject {
  const { source, body } = reject
  if (source === null || body === '') return { kind: 'unreadable', reason: 'body_unknown' }
  // An item of v1 has rules of its own, and what those drop they drop again.
  if (source.protocol === 'v1' && source.kind !== 'event') return { kind: 'unreadable', reason: 'body_unknown' }
  if (source.isCut) return { kind: 'unreadable', reason: 'body_cut' }
  const bytes = Buffer.from(body)
  const parse = itemised && source.kind === 'request' ? parseItemisedRequest : parseCaptureRequest
  const parsed = parse(
    { bytes, text: body, ascii: isAscii(bytes), formToken: null },
    {
      // An item without a name was one of `/engage`.
      engage: source.engage || (source.kind === 'item' && reject.event === '$identify'),
      querySentAtMs: source.sentAtMs,
      fallbackToken: keyOfNobody,
      itemCountMax: Number.POSITIVE_INFINITY,
      valueCountMax: captureValueCountMax,
    },
  )
  if (!parsed.ok) {
    const { code, attr } = parsed.error.error
    return { kind: 'refused', reason: code, field: attr ?? '' }
  }
  if (parsed.value === 'no_event_left' || parsed.value === 'too_much_work')
    return { kind: 'refused', reason: 'dropped_performance_event', field: '' }
  if (source.kind === 'request') return { kind: 'request', request: parsed.value }
  const historicalMigration = reject.importJobId > 0
  return { kind: 'request', request: { ...parsed.value, historicalMigration, sentAtMs: source.sentAtMs } }
}
