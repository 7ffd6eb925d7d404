// Reads the body of a stored reject again, as it was read when it arrived.

import { isAscii } from 'node:buffer'
import type { IncomingRequest } from '#core/capture/incoming-event.ts'
import type { RejectSource } from '#core/events/captured-event.ts'
import type { RejectedEvent } from '#core/events/stored-event.ts'
import type { CapturePayload } from '../capture/capture-body.ts'
import { parseCaptureRequest } from '../capture/capture-request.ts'
import { structuredIdBytesMax } from '../capture/incoming-item.ts'
import { parseItemisedRequest } from '../capture/itemised-request.ts'
import type { CaptureContext, CaptureRefusal } from '../capture/open-request.ts'
import { type DecodedV1Reject, decodeV1Reject } from './decode-v1-reject.ts'

/** Why a reject cannot be read again; docs/wire/errors.md lists these along with the codes of capture. */
export type UnreadableReject = 'body_cut' | 'body_unknown'

export type DecodedReject =
  | DecodedV0Reject
  | DecodedV1Reject
  | { readonly kind: 'unreadable'; readonly reason: UnreadableReject }

type DecodedV0Reject =
  | { readonly kind: 'request'; readonly request: IncomingRequest }
  | { readonly kind: 'refused'; readonly reason: string; readonly field: string }

/** A placeholder for the key, which a body may have had in its address or a form. The reject's project is known. */
const keyOfNobody = 'replay'

/** @param itemised whether bad events of a request leave the others unaffected. */
export function decodeReject(reject: RejectedEvent, itemised: boolean): DecodedReject {
  const { source, body } = reject
  if (source === null || source.kind === null || body === '') return { kind: 'unreadable', reason: 'body_unknown' }
  if (source.isCut) return { kind: 'unreadable', reason: 'body_cut' }
  if (source.v1 !== undefined) return decodeV1Reject(reject, source, source.v1, itemised)
  if (source.kind === 'request') return decodeRequest(body, source, itemised)
  const decoded = decodeItem(body, source)
  const isNameless = decoded.kind === 'refused' && decoded.reason === 'missing_event_name'
  // An `$identify` without a name came from `/engage`.
  const read =
    isNameless && reject.event === '$identify' ? decodeRequest(body, { ...source, engage: true }, false) : decoded
  if (read.kind !== 'request') return read
  const historicalMigration = reject.importJobId > 0
  return { kind: 'request', request: { ...read.request, historicalMigration, sentAtMs: source.sentAtMs } }
}

function decodeRequest(body: string, source: RejectSource, itemised: boolean): DecodedV0Reject {
  const parse = itemised ? parseItemisedRequest : parseCaptureRequest
  const parsed = parse(payloadOf(body), contextOf(source))
  if (!parsed.ok) return toRefused(parsed.error)
  const { value } = parsed
  return typeof value === 'string' || 'kind' in value ? nothingLeft : { kind: 'request', request: value }
}

/** Reads the item in an envelope with a key, so that the item's own key or lists are not taken for an envelope's. */
function decodeItem(body: string, source: RejectSource): DecodedV0Reject {
  const parsed = parseItemisedRequest(payloadOf(`{"token":"${keyOfNobody}","batch":[${body}]}`), contextOf(source))
  if (!parsed.ok) return toRefused(parsed.error)
  if (typeof parsed.value === 'string' || 'kind' in parsed.value) return nothingLeft
  const item = parsed.value.items[0]!
  if (item.kind === 'fault') return { kind: 'refused', reason: item.reason, field: item.field }
  return item.kind === 'performance'
    ? nothingLeft
    : { kind: 'request', request: { ...parsed.value, isItemised: false } }
}

const nothingLeft: DecodedV0Reject = { kind: 'refused', reason: 'dropped_performance_event', field: '' }

function toRefused({ error: { code, attr } }: CaptureRefusal): DecodedV0Reject {
  return { kind: 'refused', reason: code, field: attr ?? '' }
}

function payloadOf(text: string): CapturePayload {
  const bytes = Buffer.from(text)
  return { bytes, text, ascii: isAscii(bytes), formToken: null }
}

function contextOf({ engage, sentAtMs }: RejectSource): CaptureContext {
  return {
    engage,
    querySentAtMs: sentAtMs,
    fallbackToken: keyOfNobody,
    itemCountMax: Number.POSITIVE_INFINITY,
    parsedBytesMax: Number.POSITIVE_INFINITY,
    structuredIdBytesMax,
  }
}
