// Decides which accepted events and rejects a watching client receives. Pure. The JSON of an event's properties is
// parsed at most once for all watchers, and only if the rest of a filter matches.

import type { CapturedEvent, CapturedReject, Lane } from '../events/captured-event.ts'
import {
  getOwnValue,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseJson,
  readJsonNumber,
  toComparableText,
} from '../json.ts'

export interface PropertyEquality {
  readonly key: string
  readonly value: JsonValue
}

export interface LiveFilter {
  /** Null matches every event, also in the fields below. */
  readonly events: ReadonlySet<string> | null
  readonly distinctIds: ReadonlySet<string> | null
  readonly lanes: ReadonlySet<Lane>
  /**
   * Whether imports are shown. Lanes cannot tell imports apart: imported exceptions and AI events take the same lanes as
   * live ones.
   */
  readonly imports: boolean
  /** All of them must match. */
  readonly properties: readonly PropertyEquality[]
  /** Whether rejects are shown. */
  readonly rejected: boolean
}

/** `too_large`: the filter tests properties, and the event's properties are too long to be searched. */
export type LiveMatch = 'yes' | 'no' | 'too_large'

/**
 * Length of the longest properties text that a filter searches, in characters: a longer text would block the event loop for
 * milliseconds.
 */
export const propertiesLookedIntoMax = 128 * 1024

/** An accepted event whose properties are parsed when they are first needed. */
export class LiveEvent {
  readonly event: CapturedEvent
  #properties: JsonObject | null | undefined

  constructor(event: CapturedEvent) {
    this.event = event
  }

  matches(filter: LiveFilter): LiveMatch {
    const { event } = this
    if (filter.events?.has(event.name) === false) return 'no'
    if (filter.distinctIds?.has(event.distinctId) === false) return 'no'
    if (!filter.lanes.has(event.lane) || (event.historicalMigration && !filter.imports)) return 'no'
    if (filter.properties.length === 0) return 'yes'
    if (event.propertiesJson.length > propertiesLookedIntoMax) return 'too_large'
    return filter.properties.every(equality => this.#holds(equality)) ? 'yes' : 'no'
  }

  #holds({ key, value }: PropertyEquality): boolean {
    const { propertiesJson } = this.event
    // Most events need no parsing: if the text has no escapes and does not contain the key, the event lacks the key.
    if (!propertiesJson.includes('\\') && !propertiesJson.includes(JSON.stringify(key))) return false
    this.#properties ??= parseObjectOrNull(propertiesJson)
    const stored = this.#properties === null ? undefined : getOwnValue(this.#properties, key)
    return stored !== undefined && isEqual(stored, value)
  }
}

/**
 * Filters a reject by the fields that it has. A field that the reject lacks (an unreadable request has no event name)
 * is not tested.
 */
export function matchesLiveFilter(filter: LiveFilter, reject: CapturedReject): boolean {
  if (!filter.rejected || !filter.lanes.has(reject.lane)) return false
  if (reject.historicalMigration && !filter.imports) return false
  if (reject.name !== '' && filter.events?.has(reject.name) === false) return false
  return reject.distinctId === '' || filter.distinctIds?.has(reject.distinctId) !== false
}

function parseObjectOrNull(json: string): JsonObject | null {
  try {
    const value = parseJson(json)
    return isJsonObject(value) ? value : null
  } catch {
    return null // an object by contract; any other value has no properties
  }
}

/** Compares as `/events/` does: strings by their text, numbers by value, everything else by its JSON text. */
function isEqual(stored: JsonValue, asked: JsonValue): boolean {
  const texts = listEqualTexts(asked)
  return listEqualTexts(stored).some(text => texts.includes(text))
}

function listEqualTexts(value: JsonValue): string[] {
  const number = readJsonNumber(value)
  // Integers above the largest safe one are compared only by their text, because different ones share a double.
  const isExact = number !== undefined && Math.abs(number) <= Number.MAX_SAFE_INTEGER
  return isExact ? [toComparableText(value), String(number)] : [toComparableText(value)]
}
