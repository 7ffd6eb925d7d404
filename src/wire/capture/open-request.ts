// What every reading of a capture payload begins with, before it looks at single items: its JSON, how many items there are,
// the key, and where in the text the parts of each item stand. Refuses the whole request.

import type { IncomingRequest, RefusedItem } from '#core/capture/incoming-event.ts'
import { parseZonedTimestampText } from '#core/capture/timestamp-text.ts'
import { err, ok, type Result } from '#core/result.ts'
import { hasLoneSurrogateEscape } from '../bytes/json-escapes.ts'
import { type ItemSlices, sliceItems, valueCountAtMost } from '../bytes/json-slices.ts'
import type { WireError } from '../wire-error.ts'
import type { CapturePayload } from './capture-body.ts'
import { captureErrors, captureItemCountMax, captureValueCountMax, invalidJson } from './capture-errors.ts'
import { tokenHint, tokenOf } from './capture-token.ts'
import { type Fields, hasName, isObject, type ListKey, refusedItemOf } from './event-fields.ts'

export interface CaptureContext {
  /** On `/engage` an event needs no name. */
  readonly engage: boolean
  /** `_` or `sent_at` of the query, epoch ms. */
  readonly querySentAtMs: number | null
  /** A key from the query or a header, for a body that holds none. */
  readonly fallbackToken: string | null
  /** More items than this are left to another thread; more than `captureItemCountMax` are refused. */
  readonly itemCountMax: number
  /** More values than this as well; beyond `captureValueCountMax` they are not parsed at all. */
  readonly valueCountMax: number
  /** More bytes than this of ids that are lists or objects are left to another thread, unless it is `structuredIdBytesMax`. */
  readonly structuredIdBytesMax: number
}

/** `token` is the key that the request names, when it could be found: refusals of known projects are kept. */
export interface CaptureRefusal {
  readonly error: WireError
  readonly token: string | null
  /** How many items it has; absent when that could not be found out. */
  readonly eventCount?: number
  /** The one item that it has; absent when there are several, or when that could not be found out. */
  readonly item?: RefusedItem
  /** Its envelope says that it is an import. */
  readonly historicalMigration?: true
}

export type Refuse = (error: WireError) => Result<never, CaptureRefusal>

/** What the root of a request seems to hold. */
export interface ItemList {
  readonly items: readonly unknown[]
  /** The root's key of the list, for `sliceItems`. */
  readonly listKey: ListKey | null
  /** The root is the one item. */
  readonly isSingle?: true
  /** The envelope of a batch; null where tokens stand in the items. */
  readonly envelope: Fields | null
}

/** A request that has items, and not too many of them. */
export interface OpenedRequest<List extends ItemList> {
  readonly list: List
  readonly keyOutside: string | null
  readonly refuse: Refuse
}

/**
 * In the order of docs/wire/ingestion.md 1.7: JSON, shape, empty batch; then ours, too many items.
 * @param listOf the items of a root; `keyOutside`: the request names a key beside its body.
 */
export function openRequest<List extends ItemList>(
  payload: CapturePayload,
  context: CaptureContext,
  listOf: (root: unknown, engage: boolean, keyOutside: boolean) => Result<List, WireError>,
): Result<OpenedRequest<List> | 'too_much_work', CaptureRefusal> {
  const read = readRoot(payload, context, refusalOfItems)
  if (!read.ok) return read
  if (read.value === 'too_much_work') return ok('too_much_work')
  const { root, refuse } = read.value
  const keyOutside = payload.formToken ?? context.fallbackToken
  const list = listOf(root, context.engage, keyOutside !== null)
  if (!list.ok) return refuse(list.error)
  const { items } = list.value
  if (items.length === 0) return refuse(captureErrors.emptyBatch)
  if (items.length > captureItemCountMax) return refuse(captureErrors.tooManyItems)
  if (items.length > context.itemCountMax) return ok('too_much_work')
  return ok({ list: list.value, keyOutside, refuse })
}

/** What a request says of all its items, and where their parts stand. Refuses it for its key. */
export function openItems(
  payload: CapturePayload,
  context: CaptureContext,
  { list, keyOutside, refuse }: OpenedRequest<ItemList>,
): Result<
  { readonly head: Pick<IncomingRequest, 'token' | 'historicalMigration' | 'sentAtMs'>; readonly slices: ItemSlices },
  CaptureRefusal
> {
  const token = tokenOf(list, keyOutside)
  if (!token.ok) return refuse(token.error)
  const slices = sliceItems(payload.bytes, list.listKey, list.items.length)
  if (slices === null) return refuse(captureErrors.nestedTooDeep)
  const historicalMigration = list.envelope?.historical_migration === true
  const sentAtMs = sentAtOf(list.envelope) ?? context.querySentAtMs
  return ok({ head: { token: token.value, historicalMigration, sentAtMs }, slices })
}

function sentAtOf(envelope: Fields | null): number | null {
  const text = envelope?.sent_at ?? envelope?.sentAt
  return typeof text === 'string' ? parseZonedTimestampText(text) : null
}

/** What leads to the fields of an item: `batch.3.`, `3.` in a list, nothing where the root is the item. */
export function placesOf({ listKey, isSingle }: ItemList): (index: number) => string {
  if (isSingle) return () => ''
  return listKey === null ? index => `${index}.` : index => `${listKey}.${index}.`
}

/** A value and its comma. */
const valueBytesMin = 2

type RootContext = Pick<CaptureContext, 'fallbackToken' | 'valueCountMax'>

/**
 * What the JSON text says, unless it is none, or too much for here. An object, so that nothing the text says is taken for ours.
 * @param refusalOf what a refusal tells of such a root.
 */
export function readRoot(
  payload: CapturePayload,
  context: RootContext,
  refusalOf: (root: unknown, keyOutside: string | null) => Refuse,
): Result<{ readonly root: unknown; readonly refuse: Refuse } | 'too_much_work', CaptureRefusal> {
  const { valueCountMax } = context
  const keyOutside = payload.formToken ?? context.fallbackToken
  if (payload.bytes.length > valueBytesMin * valueCountMax) {
    const count = valueCountAtMost(payload.bytes)
    if (count > captureValueCountMax) return err({ error: captureErrors.tooManyValues, token: keyOutside })
    if (count > valueCountMax) return ok('too_much_work')
  }
  let root: unknown
  try {
    root = JSON.parse(payload.text)
  } catch (error) {
    return err({ error: invalidJson((error as SyntaxError).message), token: keyOutside })
  }
  const refuse = refusalOf(root, keyOutside)
  return hasLoneSurrogateEscape(payload.text) ? refuse(captureErrors.loneSurrogate) : ok({ root, refuse })
}

/** How a request is refused that becomes one record, however many items it has. */
export function refusalOfOne(root: unknown, keyOutside: string | null): Refuse {
  return error => err({ error, token: tokenHint(root, itemsOf(root)) ?? keyOutside })
}

function refusalOfItems(root: unknown, keyOutside: string | null): Refuse {
  return error => {
    const items = itemsOf(root)
    return err({
      error,
      token: tokenHint(root, items) ?? keyOutside,
      eventCount: Math.max(items.length, 1),
      ...(items.length === 1 && { item: refusedItemOf(items[0]) }),
      ...(isObject(root) && items[0] !== root && root.historical_migration === true && { historicalMigration: true }),
    })
  }
}

/** What its items seem to be, whatever is wrong with it. */
function itemsOf(root: unknown): readonly unknown[] {
  if (Array.isArray(root)) return root
  if (!isObject(root)) return [root]
  const list = Array.isArray(root.batch) ? root.batch : hasName(root) ? null : root.data
  return Array.isArray(list) ? list : [root]
}
