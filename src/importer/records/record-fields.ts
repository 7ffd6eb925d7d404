// Reads fields of source records, and sets properties of events without the empty values that products write.
// Source: docs/wire/import.md §1.0 (empty values).

import {
  getOwnValue,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  mergeObjects,
  parseJson,
  setOwnValue,
} from '#core/json.ts'
import { isNestedDeeperThan } from '#core/json-text.ts'
import { RecordReject } from './imported-event.ts'

const emptyTexts = new Set(['', '(not set)', '(not provided)'])

/** Whether a value is dropped as empty: null, a blank text, or a placeholder that products write for "unknown". */
export function isEmptyValue(value: JsonValue | undefined): boolean {
  if (value === undefined || value === null) return true
  if (typeof value !== 'string') return false
  const first = value.charCodeAt(0)
  // Fast path: nearly all texts start with neither white space nor a bracket, so they need no trimming.
  return first > blank && first !== openingBracket && first < firstBeyondAscii ? false : emptyTexts.has(value.trim())
}

const blank = 0x20
const openingBracket = 0x28
const firstBeyondAscii = 0x80

/** @returns null if the field is absent, empty or not a text. */
export function readTextField(record: JsonObject, key: string): string | null {
  const value = getOwnValue(record, key)
  return typeof value === 'string' && !isEmptyValue(value) ? value : null
}

/** @returns an empty object if the field is not an object. */
export function readObjectField(record: JsonObject, key: string): JsonObject {
  const value = getOwnValue(record, key)
  return isJsonObject(value) ? value : {}
}

/**
 * The name of an event.
 * @throws RecordReject `event_missing`, `event_not_string`, `event_name_too_long`.
 */
export function readEventName(value: JsonValue | undefined, field: string): string {
  if (value === undefined || value === null) throw new RecordReject('event_missing', field)
  if (typeof value !== 'string') throw new RecordReject('event_not_string', field)
  if (value.trim() === '') throw new RecordReject('event_missing', field)
  if (isLongerThanCharacters(value, eventNameLengthMax)) throw new RecordReject('event_name_too_long', field)
  return value
}

/** In characters. */
export const eventNameLengthMax = 200

/** Counts code points, like the service, not UTF-16 units. */
export function isLongerThanCharacters(text: string, characterCountMax: number): boolean {
  if (text.length <= characterCountMax) return false
  if (text.length > 2 * characterCountMax) return true
  let count = 0
  for (const _ of text) if (++count > characterCountMax) return true
  return false
}

/** Records that nest deeper are refused: no product writes them, and recursive code would overflow its stack. */
export const recordNestingMax = 500

/** Parses JSON in a text field. @returns undefined if the text is not JSON, or nests deeper than a record may. */
export function parseJsonText(text: string): JsonValue | undefined {
  if (isNestedDeeperThan(text, recordNestingMax)) return undefined
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

/** Sets a property unless its value is empty. */
export function putProperty(properties: JsonObject, key: string, value: JsonValue | undefined): void {
  if (value !== undefined && !isEmptyValue(value)) setOwnValue(properties, key, value)
}

/** Sets all properties of `from` that are not empty. */
export function putProperties(properties: JsonObject, from: JsonObject): void {
  for (const [key, value] of Object.entries(from)) putProperty(properties, key, value)
}

/** Sets `$set` and `$set_once` among the event's properties, unless they are empty. */
export function putPersonUpdates(properties: JsonObject, updates: { set?: JsonObject; setOnce?: JsonObject }): void {
  const { set = {}, setOnce = {} } = updates
  for (const [name, update] of [
    ['$set', set],
    ['$set_once', setOnce],
  ] as const) {
    if (Object.keys(update).length === 0) continue
    const own = getOwnValue(properties, name) ?? null
    properties[name] = isJsonObject(own) ? mergeObjects(own, update) : update
  }
}

/** Returns the properties with these names, except those with empty values. */
export function pickRecordProperties(properties: JsonObject, keys: readonly string[]): JsonObject {
  const picked: JsonObject = {}
  for (const key of keys) putProperty(picked, key, getOwnValue(properties, key))
  return picked
}

/**
 * Sets `$current_url`, and `$host` and `$pathname` as in live events, so that one filter matches imported and live events.
 * A text that is not an absolute URL, such as a path, is kept only in `$current_url`.
 * @param hasHost whether the source has the host in a separate field.
 */
export function putUrlProperties(properties: JsonObject, url: string | null, { hasHost = false } = {}): void {
  if (url === null) return
  putProperty(properties, '$current_url', url)
  const address = URL.parse(url)
  if (address === null) return
  if (!hasHost) putProperty(properties, '$host', address.host)
  putProperty(properties, '$pathname', address.pathname)
}
