// Reads the body of a stored reject again, as it was read when it arrived.

import { isAscii } from 'node:buffer'
import type { IncomingRequest, IncomingV1Request } from '#core/capture/incoming-event.ts'
import type { RejectSource } from '#core/events/captured-event.ts'
import type { RejectedEvent } from '#core/events/stored-event.ts'
import type { CapturePayload } from '../capture/capture-body.ts'
import { parseCaptureRequest } from '../capture/capture-request.ts'
import { structuredIdBytesMax } from '../capture/incoming-item.ts'
import { parseItemisedRequest } from '../capture/itemised-request.ts'
import type { CaptureContext, CaptureRefusal } from '../capture/open-request.ts'
import { parseV1Batch } from '../capture-v1/batch-request.ts'

/** Why a reject cannot be read again; docs/wire/errors.md lists these along with the codes of capture. */
export type UnreadableReject = 'body_cut' | 'body_unknown'

interface Refused {
  readonly kind: 'refused'
  readonly reason: string
  readonly field: string
}
type DecodedV0Reject = { readonly kind: 'request'; readonly request: IncomingRequest } | Refused
type DecodedV1Reject =
  /** `leftOutCount` items of the body are not among its events. */
  | {
      readonly kind: 'v1_request'
      readonly request: Omit<IncomingV1Request, 'token'>
      readonly leftOutCount: number
    }
  | Refused
export type DecodedReject =
  | DecodedV0Reject
  | DecodedV1Reject
  | { readonly kind: 'unreadable'; readonly reason: UnreadableReject }

/** A placeholder for a key that may have been outside the body, in the address or a form. The reject's project is known. */
const placeholderKey = 'replay'

/** @param itemised whether bad events of a request leave its other events unaffected. */
export function decodeReject(reject: RejectedEvent, itemised: boolean): DecodedReject {
  const { source, body } = reject
  if (source === null || source.kind === null || body === '') return { kind: 'unreadable', reason: 'body_unknown' }
  if (source.isTruncated) return { kind: 'unreadable', reason: 'body_cut' }
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
  const parsed = parse(createPayload(body), createContext(source))
  if (!parsed.ok) return toRefused(parsed.error)
  const { value } = parsed
  return typeof value === 'string' || 'kind' in value ? nothingLeft : { kind: 'request', request: value }
}

/**
 * Reads the item in an envelope with a key, so that the item's own key or lists are not taken for an envelope's key or
 * lists.
 */
function decodeItem(body: string, source: RejectSource): DecodedV0Reject {
  const parsed = parseItemisedRequest(
    createPayload(`{"token":"${placeholderKey}","batch":[${body}]}`),
    createContext(source),
  )
  if (!parsed.ok) return toRefused(parsed.error)
  if (typeof parsed.value === 'string' || 'kind' in parsed.value) return nothingLeft
  const item = parsed.value.items[0]!
  if (item.kind === 'fault') return { kind: 'refused', reason: item.reason, field: item.field }
  return item.kind === 'performance'
    ? nothingLeft
    : { kind: 'request', request: { ...parsed.value, isItemised: false } }
}

const nothingLeft: Refused = { kind: 'refused', reason: 'dropped_performance_event', field: '' }

function toRefused({ error: { code, attr } }: Pick<CaptureRefusal, 'error'>): Refused {
  return { kind: 'refused', reason: code, field: attr ?? '' }
}

function createPayload(text: string): CapturePayload {
  const bytes = Buffer.from(text)
  return { bytes, text, ascii: isAscii(bytes), formToken: null }
}

function createContext({ engage, sentAtMs }: RejectSource): CaptureContext {
  return {
    engage,
    querySentAtMs: sentAtMs,
    fallbackToken: placeholderKey,
    itemCountMax: Number.POSITIVE_INFINITY,
    parsedBytesMax: Number.POSITIVE_INFINITY,
    structuredIdBytesMax,
  }
}

const itemPlace = 'batch.0.'

/**
 * @param reject a request or an item; its body must not have been truncated. @param itemised whether items that are not
 * events or lack a uuid leave the other items unaffected.
 */
function decodeV1Reject(
  { body, importJobId, receivedAtMs }: Pick<RejectedEvent, 'body' | 'importJobId' | 'receivedAtMs'>,
  { kind, sentAtMs }: RejectSource,
  { sdk, aiOnly }: NonNullable<RejectSource['v1']>,
  itemised: boolean,
): DecodedV1Reject {
  const isItem = kind === 'item'
  const text = isItem ? `{"created_at":"1970-01-01T00:00:00Z","batch":[${body}]}` : body
  const batch = parseV1Batch(createPayload(text), { itemCountMax: Number.POSITIVE_INFINITY, itemised })
  if (!batch.ok) {
    const { reason, field } = toRefused(batch.error)
    return { kind: 'refused', reason, field: isItem ? field.replace(itemPlace, '') : field }
  }
  if (batch.value === 'too_much_work') throw new Error('a stored reject passed limits that nothing passes')
  const { leftOutCount, ...request } = batch.value
  const historicalMigration = isItem ? importJobId > 0 : request.historicalMigration
  const sent = { sentAtMs: sentAtMs ?? receivedAtMs, sdk, aiOnly }
  return { kind: 'v1_request', request: { ...request, ...sent, historicalMigration }, leftOutCount }
}
