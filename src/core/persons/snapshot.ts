// The person's properties as one event shows them: what is stored after the event, under the event's own `$set`, which
// may hold values that were not worth a write. Made from the person's text where only a few values differ.

import type { WorkingPerson } from '../events/chunk-state.ts'
import type { JsonObject, JsonValue } from '../json.ts'
import { overlay } from './mapped-properties.ts'
import { isSameValue } from './profile.ts'

/** More than this and writing the whole text anew is as quick. */
const splicedKeyCountMax = 6

/** Source: docs/wire/ingestion.md 6.8; vectors. */
export function snapshotJson(person: WorkingPerson, set: JsonObject | null): string {
  const { properties } = person
  person.propertiesJson ??= JSON.stringify(properties)
  if (set === null) return person.propertiesJson
  let differing: string[] | null = null
  for (const key of Object.keys(set)) {
    if (Object.hasOwn(properties, key) && isSameValue(properties[key], set[key])) continue
    differing ??= []
    differing.push(key)
  }
  if (differing === null) return person.propertiesJson
  const spliced =
    differing.length <= splicedKeyCountMax ? withValues(person.propertiesJson, properties, set, differing) : null
  if (spliced !== null) return spliced
  const shown = { ...properties }
  overlay(shown, set)
  return JSON.stringify(shown)
}

/**
 * `json` with the values of `keys` taken from `set`; null when that is not safe by text. A quote inside a string is
 * escaped, so `{"key":` and `,"key":` are found only where a key stands, and without objects among the values only at the
 * top.
 */
function withValues(json: string, properties: JsonObject, set: JsonObject, keys: readonly string[]): string | null {
  if (json.includes('{', 1)) return null
  let text = json
  for (const key of keys) {
    const name = JSON.stringify(key)
    const entry = `${name}:${JSON.stringify(set[key]!)}`
    if (!Object.hasOwn(properties, key)) {
      text = text === '{}' ? `{${entry}}` : `${text.slice(0, -1)},${entry}}`
      continue
    }
    const before = `${name}:${JSON.stringify(properties[key] as JsonValue)}`
    const at = text.startsWith(before, 1) ? 1 : text.indexOf(`,${before}`) + 1
    if (at === 0) return null
    text = text.slice(0, at) + entry + text.slice(at + before.length)
    if (entry.includes('{')) return null
  }
  return text
}
