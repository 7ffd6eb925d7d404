// Removes from a refused body what identifies the visitors of its cookieless events, before the reject store keeps it.
// Source: docs/wire/ingestion.md 13.6.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, parseJson, toCompactJson } from '../json.ts'
import { identifyingNames } from './cookieless-event.ts'

const isIdentifying: ReadonlySet<string> = new Set(identifyingNames)

/** How deep events are searched for: a refused request may have them in odd places, such as a list of lists. */
const depthMax = 16

/** An escape that may spell a character of the mode's name; escapes of non-ASCII characters look different. */
const escapedName = /\\u00(?:5f|[67])/i

/**
 * Longer texts are not read: a request may have many, which would take seconds, and the reject store would keep at most a
 * quarter of each.
 */
const textCharsMax = 256 * 1024

/** Whether a text may name cookieless mode. Searches the text without parsing it. */
export function mayHaveVisitors(text: string): boolean {
  return namesCookielessMode(text) || escapedName.test(text)
}

function namesCookielessMode(text: string): boolean {
  return text.includes('cookieless_mode')
}

/**
 * @param text the whole body, as sent.
 * @returns null when there is nothing to remove; '' when the text may name cookieless mode but is not JSON or is too long
 * to be read.
 */
export function stripVisitorsFromBody(text: string): string | null {
  const isNamed = namesCookielessMode(text)
  if (!isNamed && !escapedName.test(text)) return null
  if (text.length > textCharsMax) return ''
  let body: JsonValue
  try {
    body = parseJson(text)
  } catch {
    return isNamed ? '' : null
  }
  const stripped = stripEvents(body, depthMax)
  return stripped === body ? null : toCompactJson(stripped)
}

/** Strips the cookieless events in a value. Returns the same value if it contains none. */
function stripEvents(value: JsonValue, depth: number): JsonValue {
  if (depth === 0) return value
  if (Array.isArray(value)) {
    const items = value.map(item => stripEvents(item, depth - 1))
    return items.every((item, index) => item === value[index]) ? value : items
  }
  if (!isJsonObject(value)) return value
  return isCookieless(value) ? stripEvent(value) : mapMembers(value, inner => stripEvents(inner, depth - 1))
}

/** Whether an item asks for cookieless mode, even in a form or place that capture would refuse. */
function isCookieless(item: JsonObject): boolean {
  return (
    isSet(item, '$cookieless_mode') ||
    isSet(getOwnValue(item, 'properties'), '$cookieless_mode') ||
    isSet(getOwnValue(item, 'options'), 'cookieless_mode')
  )
}

function isSet(fields: JsonValue | undefined, name: string): boolean {
  if (!isJsonObject(fields)) return false
  const value = getOwnValue(fields, name) ?? false
  return value !== false
}

function stripEvent(item: JsonObject): JsonObject {
  return mapMembers(stripIdentifying(item) as JsonObject, (value, name) => {
    if (isPersonMapName(name)) return stripIdentifying(value)
    if (name !== 'properties' || !isJsonObject(value)) return value
    return mapMembers(stripIdentifying(value) as JsonObject, (inner, key) =>
      isPersonMapName(key) ? stripIdentifying(inner) : inner,
    )
  })
}

function isPersonMapName(name: string): boolean {
  return name === '$set' || name === '$set_once'
}

function stripIdentifying(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).filter(([name]) => !isIdentifying.has(name)))
}

/** Changes the values of an object's members. Returns the same object if no value changes. */
function mapMembers(object: JsonObject, change: (value: JsonValue, name: string) => JsonValue): JsonObject {
  const entries = Object.entries(object).map(([name, value]) => [name, change(value, name)] as const)
  return entries.every(([name, value]) => value === object[name]) ? object : Object.fromEntries(entries)
}
