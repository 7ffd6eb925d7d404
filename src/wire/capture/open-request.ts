// The first steps of reading any capture payload, before single items: its JSON, the number of items, the key, and the
// offsets of each item's parts in the text. A fault here refuses the whole request.

import type { IncomingRequest, RefusedItem } from '#core/capture/incoming-event.ts'
import { parseZonedTimestampText } from '#core/capture/timestamp-text.ts'
import { parseJsonWithDoubles } from '#core/json.ts'
import { hasLoneSurrogateEscape, isNestedDeeperThan } from '#core/json-text.ts'
import { err, ok, type Result } from '#core/result.ts'
import { estimateValueCountMax, findItemSlices, type ItemSlices } from '../bytes/json-slices.ts'
import type { WireError } from '../wire-error.ts'
import type { CapturePayload } from './capture-body.ts'
import { captureErrors, captureItemCountMax, captureValueCountMax, createInvalidJsonError } from './capture-errors.ts'
import { findRequestToken, guessToken } from './capture-token.ts'
import { hasEventName, isObject, type ListKey, type ParsedObject, refusedItemOf } from './event-fields.ts'
import { type RequestOutline, readRequestOutline } from './request-outline.ts'

export interface CaptureContext {
  /** On `/engage` an event needs no name. */
  readonly engage: boolean
  /** `_` or `sent_at` of the query, epoch ms. */
  readonly querySentAtMs: number | null
  /** A key from the query or a header, for a body that has none. */
  readonly fallbackToken: string | null
  /** A request of more items is left to a decode thread; one of more than `captureItemCountMax` is refused. */
  readonly itemCountMax: number
  /** A longer text that has to be parsed, because it has no outline, is left to a decode thread. */
  readonly parsedBytesMax: number
  /** With more bytes of list or object ids, a decode thread reads the request; over `structuredIdBytesMax` is a fault. */
  readonly structuredIdBytesMax: number
}

/** `token` is the request's key, if it could be found: refusals of known projects are kept. */
export interface CaptureRefusal {
  readonly error: WireError
  readonly token: string | null
  /** The number of items; absent when it is unknown. */
  readonly eventCount?: number
  /** The request's only item; absent when there are several or the number is unknown. */
  readonly item?: RefusedItem
  /** The envelope says that the request is an import. */
  readonly historicalMigration?: true
}

export type Refuse = (error: WireError) => Result<never, CaptureRefusal>

/** The items of a request's root, not fully checked yet. */
export interface ItemList {
  readonly items: readonly unknown[]
  /** The name of the root's list, for `findItemSlices`; null when the root is the list or the only item. */
  readonly listKey: ListKey | null
  /** The root is the only item. */
  readonly isSingle?: true
  /** The envelope of a batch; null without one, when tokens are in the items. */
  readonly envelope: ParsedObject | null
}

/** A request with at least one item and not too many. */
export interface OpenedRequest<List extends ItemList> {
  readonly list: List
  /** Null when the whole text was parsed. */
  readonly outline: RequestOutline | null
  readonly keyOutside: string | null
  readonly refuse: Refuse
}

/**
 * Checks in the order of docs/wire/ingestion.md 1.7: JSON, shape, empty batch; then, our own, too many items.
 * @param listOf finds the items of a root; its `keyOutside` says whether the request has a key outside its body.
 */
export function parseRequestItems<List extends ItemList>(
  payload: CapturePayload,
  context: CaptureContext,
  listOf: (root: unknown, engage: boolean, keyOutside: boolean) => Result<List, WireError>,
): Result<OpenedRequest<List> | 'too_much_work', CaptureRefusal> {
  const keyOutside = payload.formToken ?? context.fallbackToken
  if (hasTooManyValues(payload.bytes)) return err({ error: captureErrors.tooManyValues, token: keyOutside })
  const outline = readRequestOutline(payload, context.itemCountMax)
  if (outline === null && payload.bytes.length > context.parsedBytesMax) return ok('too_much_work')
  if (outline === null && isNestedTooDeepToParse(payload.text))
    return err({ error: captureErrors.nestedTooDeep, token: keyOutside })
  const parsed = outline === null ? parseRoot(payload, keyOutside, createRefusalOfItems) : ok(outline)
  if (!parsed.ok) return parsed
  const { root } = parsed.value
  const refuse = createRefusalOfItems(root, keyOutside)
  const list = listOf(root, context.engage, keyOutside !== null)
  if (!list.ok) return refuse(list.error)
  const { items } = list.value
  if (items.length === 0) return refuse(captureErrors.emptyBatch)
  if (items.length > captureItemCountMax) return refuse(captureErrors.tooManyItems)
  if (items.length > context.itemCountMax) return ok('too_much_work')
  return ok({ list: list.value, outline, keyOutside, refuse })
}

/**
 * Reads what applies to all items of a request, and the slices of their parts. Refuses a request with a missing or bad key.
 */
export function readRequestHeadAndSlices(
  payload: CapturePayload,
  context: CaptureContext,
  { list, outline, keyOutside, refuse }: OpenedRequest<ItemList>,
): Result<
  { readonly head: Pick<IncomingRequest, 'token' | 'historicalMigration' | 'sentAtMs'>; readonly slices: ItemSlices },
  CaptureRefusal
> {
  const token = findRequestToken(list, keyOutside)
  if (!token.ok) return refuse(token.error)
  const slices =
    outline?.listKey === list.listKey ? outline.slices : findItemSlices(payload.bytes, list.listKey, list.items.length)
  if (slices === null) return refuse(captureErrors.nestedTooDeep)
  const historicalMigration = list.envelope?.historical_migration === true
  const sentAtMs = readSentAt(list.envelope) ?? context.querySentAtMs
  return ok({ head: { token: token.value, historicalMigration, sentAtMs }, slices })
}

function readSentAt(envelope: ParsedObject | null): number | null {
  const text = envelope?.sent_at ?? envelope?.sentAt
  return typeof text === 'string' ? parseZonedTimestampText(text) : null
}

/** The prefix of an item's fields: `batch.3.`, `3.` in a list, '' when the root is the item. */
export function createItemPathPrefix({ listKey, isSingle }: ItemList): (index: number) => string {
  if (isSingle) return () => ''
  return listKey === null ? index => `${index}.` : index => `${listKey}.${index}.`
}

/**
 * The parsed JSON, unless it is invalid or has more or deeper values than any request may have, and the slices of its
 * items, which are null if any value is nested too deeply.
 * @param refusalOf returns, for a root, the function that makes the request's refusals.
 */
export function readBodyRoot(
  payload: CapturePayload,
  { fallbackToken }: Pick<CaptureContext, 'fallbackToken'>,
  refusalOf: RefusalOf,
): Result<{ readonly root: unknown; readonly slices: ItemSlices | null; readonly refuse: Refuse }, CaptureRefusal> {
  const keyOutside = payload.formToken ?? fallbackToken
  if (hasTooManyValues(payload.bytes)) return err({ error: captureErrors.tooManyValues, token: keyOutside })
  const slices = findItemSlices(payload.bytes, null, captureItemCountMax)
  if (slices === null && isNestedTooDeepToParse(payload.text))
    return err({ error: captureErrors.nestedTooDeep, token: keyOutside })
  const parsed = parseRoot(payload, keyOutside, refusalOf)
  if (!parsed.ok) return parsed
  const { root } = parsed.value
  return ok({ root, slices, refuse: refusalOf(root, keyOutside) })
}

/** A text that nests deeper than this is refused unparsed. Any other is parsed, because a refusal names its project. */
const parsedNestingMax = 1_000

/** For texts without an outline or slices; all others are nested less deeply. Parsing 4 million levels takes a second. */
export function isNestedTooDeepToParse(text: string): boolean {
  return isNestedDeeperThan(text, parsedNestingMax)
}

type RefusalOf = (root: unknown, keyOutside: string | null) => Refuse

/** The bytes of the shortest value and its comma. */
const valueBytesMin = 2

/** Whether a text has more values than any request may have. The text is not parsed for that. */
export function hasTooManyValues(bytes: Uint8Array): boolean {
  return bytes.length > valueBytesMin * captureValueCountMax && estimateValueCountMax(bytes) > captureValueCountMax
}

function parseRoot(
  { text }: CapturePayload,
  keyOutside: string | null,
  refusalOf: RefusalOf,
): Result<{ readonly root: unknown }, CaptureRefusal> {
  let root: unknown
  try {
    root = parseJsonWithDoubles(text)
  } catch (error) {
    return err({ error: createInvalidJsonError((error as SyntaxError).message), token: keyOutside })
  }
  return hasLoneSurrogateEscape(text) ? refusalOf(root, keyOutside)(captureErrors.loneSurrogate) : ok({ root })
}

/** Returns the function that refuses a request which counts as one record, however many items it has. */
export function createWholeRequestRefusal(root: unknown, keyOutside: string | null): Refuse {
  return error => err({ error, token: guessToken(root, guessItems(root)) ?? keyOutside })
}

function createRefusalOfItems(root: unknown, keyOutside: string | null): Refuse {
  return error => {
    const items = guessItems(root)
    return err({
      error,
      token: guessToken(root, items) ?? keyOutside,
      eventCount: Math.max(items.length, 1),
      ...(items.length === 1 && { item: refusedItemOf(items[0]) }),
      ...(isObject(root) && items[0] !== root && root.historical_migration === true && { historicalMigration: true }),
    })
  }
}

/** The items that a root seems to have, even if the root is not valid. */
function guessItems(root: unknown): readonly unknown[] {
  if (Array.isArray(root)) return root
  if (!isObject(root)) return [root]
  const list = Array.isArray(root.batch) ? root.batch : hasEventName(root) ? null : root.data
  return Array.isArray(list) ? list : [root]
}
