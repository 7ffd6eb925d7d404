// Reads from the properties of a group event which group it describes.

import { getOwnValue, type JsonObject, type JsonValue, readJsonNumber, toComparableText } from '../json.ts'

export const groupKeyLengthMax = 400
export const typeNameLengthMax = 400

export interface GroupIdentity {
  readonly typeName: string
  readonly key: string
}

/** The group that a group event describes; null if type or key is missing, which makes it an ordinary event. */
export function readGroupIdentity(properties: JsonObject): GroupIdentity | null {
  const typeName = getOwnValue(properties, '$group_type')
  if (typeof typeName !== 'string' || typeName === '' || typeName.length > typeNameLengthMax) return null
  const key = readGroupKey(properties)
  return key === null ? null : { typeName: replaceUnstorableText(typeName), key }
}

/** Reads the group key of a group event, whatever its group type is; null without a key. */
export function readGroupKey(properties: JsonObject): string | null {
  const key = getOwnValue(properties, '$group_key')
  return key === undefined || !isTruthy(key) ? null : replaceUnstorableText(toComparableText(key))
}

export function isTruthy(value: JsonValue): boolean {
  const number = readJsonNumber(value)
  return number === undefined ? Boolean(value) : number !== 0 && !Number.isNaN(number)
}

/** Replaces what stores cannot keep: NUL and lone surrogates. Source: docs/wire/ingestion.md 2.2, 6.7. */
export function replaceUnstorableText(text: string): string {
  return (text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text).toWellFormed()
}
