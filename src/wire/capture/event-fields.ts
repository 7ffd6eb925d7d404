// Which types the fields of an event and of an envelope may have, and where project keys are found.
// Source: docs/wire/ingestion.md 2.1, 2.2, 2.4.

import type { RefusedItem } from '#core/capture/incoming-event.ts'
import { parseUuid, uuidTextLength } from '#core/events/uuid.ts'

/** The names of the list of items; some libraries use `data`. */
export type ListKey = 'batch' | 'data'

/** A parsed object. It may have any own key; read it only by names that no prototype has. */
export type ParsedObject = { readonly [key: string]: unknown }

/**
 * Whether an envelope or its items have a key. Some libraries put a batch's key in an item's `api_key` or properties, but
 * an item's `token` alone does not count. In a list under `data`, items count the same way as in a list at the root.
 * Source: docs/wire/ingestion.md 2.1; docs/wire/clients.md 1 rule 16.
 */
export function hasEnvelopeKey(root: ParsedObject, listKey: ListKey): boolean {
  if (tokenFieldOf(root) !== null) return true
  const keyIn = listKey === 'batch' ? readBatchItemKey : readTokenIn
  return (root[listKey] as unknown[]).some(item => isObject(item) && keyIn(item) !== null)
}

function readBatchItemKey({ api_key: apiKey, properties }: ParsedObject): string | null {
  return readTokenIn({ api_key: apiKey, properties })
}

/** The name of the root's list of items; null when it has none, or when another field of the envelope is wrong. */
export function listKeyOf(root: ParsedObject, keyOutside: boolean): ListKey | null {
  const listKey = Array.isArray(root.batch) ? 'batch' : Array.isArray(root.data) && !hasEventName(root) ? 'data' : null
  if (listKey === null || findEnvelopeFault(root) !== null) return null
  return keyOutside || hasEnvelopeKey(root, listKey) ? listKey : null
}

/** The first field of the envelope with a wrong type, or null. Its token may be missing: the items may have it. */
export function findEnvelopeFault(root: ParsedObject): 'historical_migration' | 'sent_at' | 'api_key' | null {
  const { historical_migration: historical, sent_at: sentAt, token, api_key: apiKey } = root
  if (historical !== undefined && historical !== null && typeof historical !== 'boolean') return 'historical_migration'
  if (!isTextOrAbsent(sentAt)) return 'sent_at'
  const isKeySound =
    token === undefined
      ? apiKey === undefined || typeof apiKey === 'string'
      : apiKey === undefined && typeof token === 'string'
  return isKeySound ? null : 'api_key'
}

export function findListFault(items: readonly unknown[], prefix: string): string | null {
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    if (!isObject(item)) return `${prefix}${index}`
    const fault = hasEventName(item) ? findFieldsFault(item) : 'event'
    if (fault !== null) return `${prefix}${index}.${fault}`
  }
  return null
}

/** The first field with a type that no event may have, or null. Source: docs/wire/ingestion.md 2.2. */
export function findFieldsFault(item: ParsedObject): string | null {
  const { token, $token, api_key: apiKey, uuid, properties, timestamp, offset, $set, $set_once: setOnce } = item
  if ((token !== undefined ? 1 : 0) + ($token !== undefined ? 1 : 0) + (apiKey !== undefined ? 1 : 0) > 1)
    return 'api_key'
  if (!isTextOrAbsent(token ?? $token ?? apiKey)) return 'api_key'
  if (item.distinct_id !== undefined && item.$distinct_id !== undefined) return 'distinct_id'
  if (!isTextOrAbsent(uuid) || (typeof uuid === 'string' && uuid !== '' && parseUuid(uuid) === null)) return 'uuid'
  if (properties !== undefined && !isMap(properties)) return 'properties'
  if (!isTextOrAbsent(timestamp)) return 'timestamp'
  if (offset !== undefined && offset !== null && typeof offset !== 'number') return 'offset'
  if ($set !== undefined && $set !== null && !isMap($set)) return '$set'
  return setOnce !== undefined && setOnce !== null && !isMap(setOnce) ? '$set_once' : null
}

export function readTokenIn(item: ParsedObject): string | null {
  const { token, $token, api_key: apiKey, properties } = item
  const own = token ?? $token ?? apiKey
  if (typeof own === 'string') return own
  return isObject(properties) && typeof properties.token === 'string' ? properties.token : null
}

export function tokenFieldOf(envelope: ParsedObject): string | null {
  const token = envelope.api_key ?? envelope.token
  return typeof token === 'string' ? token : null
}

export function hasEventName(item: ParsedObject): boolean {
  return typeof item.event === 'string'
}

/** The event's UUID; old libraries' `messageId` counts when it is a UUID. Source: docs/wire/clients.md 5.2. */
export function uuidOf(item: ParsedObject): string | null {
  if (typeof item.uuid === 'string' && item.uuid !== '') return parseUuid(item.uuid)
  return typeof item.messageId === 'string' ? parseUuid(item.messageId) : null
}

/**
 * `uuidOf` for an item without a fault: a UUID of 36 characters already has its dashes, and parsing it would cost 0.1
 * µs.
 */
export function uuidOfValidItem(item: ParsedObject): string | null {
  const { uuid } = item
  return typeof uuid === 'string' && uuid.length === uuidTextLength ? uuid.toLowerCase() : uuidOf(item)
}

/** What can be read of a refused item. */
export function refusedItemOf(item: unknown): RefusedItem {
  if (!isObject(item)) return { uuid: '', name: '', distinctId: '' }
  return {
    uuid: uuidOf(item) ?? '',
    name: hasEventName(item) ? (item.event as string) : '',
    distinctId: readPlainId(item),
  }
}

/** The distinct id when it is text or a safe integer, else ''. */
function readPlainId(item: ParsedObject): string {
  const properties = isObject(item.properties) ? item.properties : noFields
  const id = item.distinct_id ?? item.$distinct_id ?? properties.distinct_id ?? properties.$distinct_id
  if (typeof id === 'string') return id
  return Number.isSafeInteger(id) ? String(id) : ''
}

const noFields: ParsedObject = Object.freeze({})

export function isObject(value: unknown): value is ParsedObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a value is an object, or `[]`, which PHP writes for an empty object. Source: docs/wire/clients.md 1 rule 13. */
function isMap(value: unknown): boolean {
  return isObject(value) || (Array.isArray(value) && value.length === 0)
}

export function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string'
}
