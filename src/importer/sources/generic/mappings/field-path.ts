// Paths into records. A field whose name contains dots, as in many CSV headers, takes precedence over a nested field.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import { parseJsonText } from '#importer/records/record-fields.ts'

/**
 * @param path such as `user_id`, `user.id` or `items.0.id`. Texts that hold JSON are searched too.
 * @returns undefined when the record has no such field.
 */
export function findValueAtPath(record: JsonObject, path: string): JsonValue | undefined {
  if (Object.hasOwn(record, path)) return record[path]
  for (let dot = path.indexOf('.'); dot >= 0; dot = path.indexOf('.', dot + 1)) {
    const inner = parseChildren(getOwnValue(record, path.slice(0, dot)))
    const value = inner === null ? undefined : findValueAtPath(inner, path.slice(dot + 1))
    if (value !== undefined) return value
  }
  return undefined
}

/** The value as an object, parsed if it is JSON text; null for anything else. */
export function parseObjectMembers(value: JsonValue | undefined): JsonObject | null {
  const plain = typeof value === 'string' && value.startsWith('{') ? parseJsonText(value) : value
  return isJsonObject(plain) ? plain : null
}

/** Like `parseObjectMembers`, with lists as objects keyed by index. */
function parseChildren(value: JsonValue | undefined): JsonObject | null {
  const plain = typeof value === 'string' && value.startsWith('[') ? parseJsonText(value) : value
  return Array.isArray(plain) ? Object.fromEntries(plain.entries()) : parseObjectMembers(plain)
}
