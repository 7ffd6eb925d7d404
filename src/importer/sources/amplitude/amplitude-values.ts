// Amplitude's forms of empty values and booleans, and objects that a warehouse has stored as text.
// Source: docs/wire/import.md §1.0 (empty values), §1.1.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, setOwnValue } from '#core/json.ts'
import { toLegalId } from '#importer/records/distinct-ids.ts'
import { RecordReject } from '#importer/records/imported-event.ts'
import { isEmptyValue, parseJsonText, readTextField } from '#importer/records/record-fields.ts'

export function isEmptyInAmplitude(value: JsonValue | undefined): boolean {
  return isEmptyValue(value) || value === 'EMPTY'
}

/** @returns the id; null when it is absent or a placeholder. */
export function readAmplitudeId(value: JsonValue | undefined): string | null {
  return isEmptyInAmplitude(value) ? null : toLegalId(value)
}

/** A text field; null when it is empty. */
export function readAmplitudeText(record: JsonObject, field: string): string | null {
  const text = readTextField(record, field)
  return isEmptyInAmplitude(text) ? null : text
}

/** Sets a property unless its value is empty. */
export function putAmplitudeValue(properties: JsonObject, key: string, value: JsonValue | undefined): void {
  if (value !== undefined && !isEmptyInAmplitude(value)) setOwnValue(properties, key, value)
}

/** Returns an object with only those members whose values are not empty. */
export function removeEmptyValues(object: JsonObject): JsonObject {
  const kept: JsonObject = {}
  for (const [key, value] of Object.entries(object)) putAmplitudeValue(kept, key, value)
  return kept
}

/**
 * Reads an object, or its JSON text, which copies of exports contain instead. Returns an empty object if the field is
 * empty.
 * @throws RecordReject `properties_not_object`.
 */
export function readAmplitudeObject(record: JsonObject, field: string): JsonObject {
  const value = getOwnValue(record, field)
  if (isEmptyInAmplitude(value)) return {}
  const object = parseObjectText(value)
  if (!isJsonObject(object)) throw new RecordReject('properties_not_object', field)
  return object
}

/** Parses a text that contains a JSON object; returns other values unchanged. */
export function parseObjectText(value: JsonValue | undefined): JsonValue | undefined {
  return typeof value === 'string' && value.startsWith('{') ? (parseJsonText(value) ?? value) : value
}

/** Reads a boolean in any of the forms that exports use; returns other values unchanged. */
export function toAmplitudeBoolean(value: JsonValue | undefined): JsonValue | undefined {
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
