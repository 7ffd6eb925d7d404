// How Amplitude writes that there is nothing, truth, and objects where a warehouse has kept them as text.
// Source: docs/wire/import.md §1.0 (empty values), §1.1.

import { isJsonObject, type JsonObject, type JsonValue, ownValue, setOwn } from '#core/json.ts'
import { legalId } from '#importer/records/distinct-ids.ts'
import { RecordReject } from '#importer/records/imported-event.ts'
import { isEmptyValue, jsonInText, textField } from '#importer/records/record-fields.ts'

export function isNothing(value: JsonValue | undefined): boolean {
  return isEmptyValue(value) || value === 'EMPTY'
}

/** @returns the id; null where it is absent or means nobody. */
export function amplitudeId(value: JsonValue | undefined): string | null {
  return isNothing(value) ? null : legalId(value)
}

/** A text field; null where it says nothing. */
export function textIn(record: JsonObject, field: string): string | null {
  const text = textField(record, field)
  return isNothing(text) ? null : text
}

/** Sets a property unless it says nothing. */
export function putValue(properties: JsonObject, key: string, value: JsonValue | undefined): void {
  if (value !== undefined && !isNothing(value)) setOwn(properties, key, value)
}

/** All members that say something. */
export function withoutNothing(object: JsonObject): JsonObject {
  const kept: JsonObject = {}
  for (const [key, value] of Object.entries(object)) putValue(kept, key, value)
  return kept
}

/**
 * An object, also as the JSON text of it that copies of exports have; empty when the field is.
 * @throws RecordReject `properties_not_object`.
 */
export function objectIn(record: JsonObject, field: string): JsonObject {
  const value = ownValue(record, field)
  if (isNothing(value)) return {}
  const object = asObject(value)
  if (!isJsonObject(object)) throw new RecordReject('properties_not_object', field)
  return object
}

/** The object that a text is the JSON of; other values as they are. */
export function asObject(value: JsonValue | undefined): JsonValue | undefined {
  return typeof value === 'string' && value.startsWith('{') ? (jsonInText(value) ?? value) : value
}

/** Truth as any of the forms that exports use for it; other values as they are. */
export function truthOf(value: JsonValue | undefined): JsonValue | undefined {
  switch (typeof value === 'string' ? value.toLowerCase() : value) {
    case true:
    case 1:
    case '1':
    case 'true':
      return true
    case false:
    case 0:
    case '0':
    case 'false':
      return false
    default:
      return value
  }
}
