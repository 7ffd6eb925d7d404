// Reads the body of a stored v1 reject again, as it was read when it arrived; its `source` has what the headers said.

import { isAscii } from 'node:buffer'
import type { IncomingV1Request } from '#core/capture/incoming-event.ts'
import type { RejectSource } from '#core/events/captured-event.ts'
import type { RejectedEvent } from '#core/events/stored-event.ts'
import { parseV1Batch } from '../capture-v1/batch-request.ts'

export type DecodedV1Reject =
  /** `leftOutCount` items of the body are not among its events. */
  | {
      readonly kind: 'v1_request'
      readonly request: Omit<IncomingV1Request, 'token'>
      readonly leftOutCount: number
    }
  | { readonly kind: 'refused'; readonly reason: string; readonly field: string }

const itemPlace = 'batch.0.'

/**
 * @param reject a request or an item; its body must not have been cut.
 * @param itemised whether items that are no events or lack a uuid leave the others unaffected.
 */
export function decodeV1Reject(
  { body, importJobId, receivedAtMs }: Pick<RejectedEvent, 'body' | 'importJobId' | 'receivedAtMs'>,
  { kind, sentAtMs }: RejectSource,
  { sdk, aiOnly }: NonNullable<RejectSource['v1']>,
  itemised: boolean,
): DecodedV1Reject {
  const isItem = kind === 'item'
  const text = isItem ? `{"created_at":"1970-01-01T00:00:00Z","batch":[${body}]}` : body
  const bytes = Buffer.from(text)
  const limits = { itemCountMax: Number.POSITIVE_INFINITY, itemised }
  const batch = parseV1Batch({ bytes, text, ascii: isAscii(bytes) }, limits)
  if (!batch.ok) {
    const { code, attr } = batch.error.error
    const field = attr ?? ''
    return { kind: 'refused', reason: code, field: isItem ? field.replace(itemPlace, '') : field }
  }
  if (batch.value === 'too_much_work') throw new Error('a stored reject passed limits that nothing passes')
  const { leftOutCount, ...request } = batch.value
  const historicalMigration = isItem ? importJobId > 0 : request.historicalMigration
  const sent = { sentAtMs: sentAtMs ?? receivedAtMs, sdk, aiOnly }
  return { kind: 'v1_request', request: { ...request, ...sent, historicalMigration }, leftOutCount }
}
