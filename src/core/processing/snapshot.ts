// The person's properties as one event shows them: what is stored after the event, under the event's own `$set`, which
// may hold values that were not worth a write. Made from the person's text where only a few values differ.

import { type JsonObject, type JsonValue, setOwn } from '../json.ts'
import { type ChangedProfile, isSameValue } from '../persons/profile.ts'
import type { WorkingPerson } from './chunk-state.ts'
import { overlay } from './mapped-properties.ts'

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

/** A key that JavaScript puts before all others, in ascending order. */
const isNumberKey = /^\d+$/

/**
 * JSON text of the properties after a change, made from the text before where that is known: a few keys of a person with
 * tens of thousands cost what they take, and not what the person takes.
 */
export function textAfterChange(before: string | null, { properties, replaced }: ChangedProfile): string {
  if (before === null || replaced === null || replaced.size > splicedKeyCountMax) return JSON.stringify(properties)
  const old: JsonObject = {}
  for (const [key, value] of replaced) {
    if (value !== undefined) setOwn(old, key, value)
    else if (isNumberKey.test(key)) return JSON.stringify(properties)
  }
  return withValues(before, old, properties, [...replaced.keys()]) ?? JSON.stringify(properties)
}

/**
 * `json` with the values of `keys` taken from `set`; null when that is not safe by text. A quote inside a string is
 * escaped, so `{"key":` and `,"key":` are found only where a key stands: at the top, or in an object among the values, in
 * which case the key has to be the only one of its name behind a comma.
 */
function withValues(json: string, properties: JsonObject, set: JsonObject, keys: readonly string[]): string | null {
  let text = json
  for (const key of keys) {
    const name = JSON.stringify(key)
    const entry = `${name}:${JSON.stringify(set[key]!)}`
    if (!Object.hasOwn(properties, key)) {
      text = text === '{}' ? `{${entry}}` : `${text.slice(0, -1)},${entry}}`
      continue
    }
    const before = `${name}:${JSON.stringify(properties[key] as JsonValue)}`
    const at = text.startsWith(`${name}:`, 1) ? 1 : onlyPlaceOf(name, text)
    if (at === 0 || !text.startsWith(before, at) || !/[,}]/.test(text[at + before.length]!)) return null
    text = text.slice(0, at) + entry + text.slice(at + before.length)
  }
  return text
}

/** Where a key that is not the first one stands at the top of `text`; 0 when another key of that name may be meant. */
function onlyPlaceOf(name: string, text: string): number {
  const at = text.indexOf(`,${name}:`) + 1
  return at > 0 && text.includes('{', 1) && text.includes(`,${name}:`, at) ? 0 : at
}
