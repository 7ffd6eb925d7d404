// Which types the fields of an event and of an envelope may have, and where their keys stand.
// Source: docs/wire/ingestion.md 2.1, 2.2, 2.4.

import type { RefusedItem } from '#core/capture/incoming-event.ts'
import { parseUuid } from '#core/events/uuid.ts'

/** `data`: of libraries that name the list so. */
export type ListKey = 'batch' | 'data'

/** An object of `JSON.parse`. Any own key; only read by names that no prototype has. */
export type Fields = { readonly [key: string]: unknown }

/**
 * A batch may have its key in an item's `api_key` or properties, as some libraries send it, but not in an item's `token` alone.
 * A list under `data` is one of events, as at the root. Source: docs/wire/ingestion.md 2.1; docs/wire/clients.md 1 rule 16.
 */
export function hasEnvelopeKey(root: Fields, listKey: ListKey): boolean {
  if (tokenFieldOf(root) !== null) return true
  const keyIn = listKey === 'batch' ? keyInBatchItem : tokenIn
  return (root[listKey] as unknown[]).some(item => isObject(item) && keyIn(item) !== null)
}

function keyInBatchItem({ api_key: apiKey, properties }: Fields): string | null {
  return tokenIn({ api_key: apiKey, properties })
}

/** The key of the list of items, where the root has one and no other field of the envelope is wrong; else null. */
export function listKeyOf(root: Fields, keyOutside: boolean): ListKey | null {
  const listKey = Array.isArray(root.batch) ? 'batch' : Array.isArray(root.data) && !hasName(root) ? 'data' : null
  if (listKey === null || faultOfEnvelope(root) !== null) return null
  return keyOutside || hasEnvelopeKey(root, listKey) ? listKey : null
}

/** The envelope's own field that has no type it may have, or null; its token may be missing, for the items may hold it. */
export function faultOfEnvelope(root: Fields): 'historical_migration' | 'sent_at' | 'api_key' | null {
  const { historical_migration: historical, sent_at: sentAt, token, api_key: apiKey } = root
  if (historical !== undefined && historical !== null && typeof historical !== 'boolean') return 'historical_migration'
  if (!isTextOrAbsent(sentAt)) return 'sent_at'
  const isKeySound =
    token === undefined
      ? apiKey === undefined || typeof apiKey === 'string'
      : apiKey === undefined && typeof token === 'string'
  return isKeySound ? null : 'api_key'
}

export function faultOfList(items: readonly unknown[], prefix: string): string | null {
  for (let index = 0; index < items.length; index++) {
    const item = items[index]
    if (!isObject(item)) return `${prefix}${index}`
    const fault = hasName(item) ? faultOfFields(item) : 'event'
    if (fault !== null) return `${prefix}${index}.${fault}`
  }
  return null
}

/** The first field whose type no event may have, or null. Source: docs/wire/ingestion.md 2.2. */
export function faultOfFields(item: Fields): string | null {
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

export function tokenIn(item: Fields): string | null {
  const { token, $token, api_key: apiKey, properties } = item
  const own = token ?? $token ?? apiKey
  if (typeof own === 'string') return own
  return isObject(properties) && typeof properties.token === 'string' ? properties.token : null
}

export function tokenFieldOf(envelope: Fields): string | null {
  const token = envelope.api_key ?? envelope.token
  return typeof token === 'string' ? token : null
}

export function hasName(item: Fields): boolean {
  return typeof item.event === 'string'
}

/** `messageId` of old libraries counts when it is a UUID. Source: docs/wire/clients.md 5.2. */
export function uuidOf(item: Fields): string | null {
  if (typeof item.uuid === 'string' && item.uuid !== '') return parseUuid(item.uuid)
  return typeof item.messageId === 'string' ? parseUuid(item.messageId) : null
}

/** As far as a refused item can be read. */
export function refusedItemOf(item: unknown): RefusedItem {
  if (!isObject(item)) return { uuid: '', name: '', distinctId: '' }
  return { uuid: uuidOf(item) ?? '', name: hasName(item) ? (item.event as string) : '', distinctId: plainIdOf(item) }
}

/** Where distinct ids stand. Numbers lose their literals, and what is no text otherwise is left. */
function plainIdOf(item: Fields): string {
  const properties = isObject(item.properties) ? item.properties : noFields
  const id = item.distinct_id ?? item.$distinct_id ?? properties.distinct_id ?? properties.$distinct_id
  if (typeof id === 'string') return id
  return Number.isSafeInteger(id) ? String(id) : ''
}

const noFields: Fields = Object.freeze({})

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An object, or the list that PHP makes of an empty one. Source: docs/wire/clients.md 1 rule 13. */
function isMap(value: unknown): boolean {
  return isObject(value) || (Array.isArray(value) && value.length === 0)
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string'
}
