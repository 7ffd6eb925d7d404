// The person's properties in an event's row: the person after the event, overwritten by the event's own `$set`, which may
// have values that were not worth a write. If only a few values differ, the person's text is edited.

import { copyOwnKeys } from '#core/processing/properties/mapped-properties.ts'
import { type JsonObject, type JsonValue, setOwnValue } from '../json.ts'
import { type ChangedProfile, isSamePropertyValue } from '../persons/profile.ts'
import type { WorkingPerson } from './chunk-state.ts'

/** If more keys differ, rewriting the whole text is as fast. */
const splicedKeyCountMax = 6

/** Source: docs/wire/ingestion.md 6.8; vectors. */
export function buildPersonSnapshotJson(person: WorkingPerson, set: JsonObject | null): string {
  const { properties } = person
  person.propertiesJson ??= JSON.stringify(properties)
  if (set === null) return person.propertiesJson
  let differing: string[] | null = null
  for (const key of Object.keys(set)) {
    if (Object.hasOwn(properties, key) && isSamePropertyValue(properties[key], set[key])) continue
    differing ??= []
    differing.push(key)
  }
  if (differing === null) return person.propertiesJson
  const spliced =
    differing.length <= splicedKeyCountMax ? replaceValues(person.propertiesJson, properties, set, differing) : null
  if (spliced !== null) return spliced
  const shown = { ...properties }
  copyOwnKeys(shown, set)
  return JSON.stringify(shown)
}

/** JavaScript puts keys made of digits before all other keys, in ascending order. */
const isNumberKey = /^\d+$/

/**
 * The JSON text of the properties after a change, edited from the earlier text if that is known, so that changing a few of
 * tens of thousands of keys costs only those keys.
 */
export function updatePropertiesText(before: string | null, { properties, replaced }: ChangedProfile): string {
  if (before === null || replaced === null || replaced.size > splicedKeyCountMax) return JSON.stringify(properties)
  const old: JsonObject = {}
  for (const [key, value] of replaced) {
    if (value !== undefined) setOwnValue(old, key, value)
    else if (isNumberKey.test(key)) return JSON.stringify(properties)
  }
  return replaceValues(before, old, properties, [...replaced.keys()]) ?? JSON.stringify(properties)
}

/**
 * `json` with the values of `keys` taken from `set`; null if editing the text is not safe. A quote inside a string is
 * escaped, so `{"key":` and `,"key":` match only keys, either at the top level or in an object among the values. If there
 * is such an object, the key must occur only once after a comma.
 */
function replaceValues(json: string, properties: JsonObject, set: JsonObject, keys: readonly string[]): string | null {
  let text = json
  for (const key of keys) {
    const name = JSON.stringify(key)
    const entry = `${name}:${JSON.stringify(set[key]!)}`
    if (!Object.hasOwn(properties, key)) {
      text = text === '{}' ? `{${entry}}` : `${text.slice(0, -1)},${entry}}`
      continue
    }
    const before = `${name}:${JSON.stringify(properties[key] as JsonValue)}`
    const at = text.startsWith(`${name}:`, 1) ? 1 : findOnlyPlace(name, text)
    if (at === 0 || !text.startsWith(before, at) || !/[,}]/.test(text[at + before.length]!)) return null
    text = text.slice(0, at) + entry + text.slice(at + before.length)
  }
  return text
}

/** The index of a top-level key after the first; 0 if there is none or the match could be a nested key. */
function findOnlyPlace(name: string, text: string): number {
  const at = text.indexOf(`,${name}:`) + 1
  return at > 0 && text.includes('{', 1) && text.includes(`,${name}:`, at) ? 0 : at
}
