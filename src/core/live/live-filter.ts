// Which accepted events and rejects somebody who watches wants to see. Pure; the JSON of an event's properties is parsed at
// most once for all who watch, and only when everything else of a filter holds.

import type { CapturedEvent, CapturedReject, Lane } from '../events/captured-event.ts'
import { isJsonObject, type JsonObject, type JsonValue, numberOf, ownValue, parseJson, textOf } from '../json.ts'

export interface PropertyEquality {
  readonly key: string
  readonly value: JsonValue
}

export interface LiveFilter {
  /** Null, here and below: every one. */
  readonly events: ReadonlySet<string> | null
  readonly distinctIds: ReadonlySet<string> | null
  readonly lanes: ReadonlySet<Lane>
  /** All of them must hold. */
  readonly properties: readonly PropertyEquality[]
  /** Whether rejects are shown. */
  readonly rejected: boolean
}

/** `too_large`: the filter asks for properties, and the event has too many of them to look. */
export type LiveMatch = 'yes' | 'no' | 'too_large'

/** Characters of properties that a filter looks into: more would hold the event loop for milliseconds. */
export const propertiesLookedIntoMax = 128 * 1024

/** An accepted event whose properties are parsed when they are first asked for. */
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
    if (!filter.lanes.has(event.lane)) return 'no'
    if (filter.properties.length === 0) return 'yes'
    if (event.propertiesJson.length > propertiesLookedIntoMax) return 'too_large'
    return filter.properties.every(equality => this.#holds(equality)) ? 'yes' : 'no'
  }

  #holds({ key, value }: PropertyEquality): boolean {
    const { propertiesJson } = this.event
    // Most events lack the key, and most texts spell keys without escapes: no need to parse those.
    if (!propertiesJson.includes('\\') && !propertiesJson.includes(JSON.stringify(key))) return false
    this.#properties ??= parsedObject(propertiesJson)
    const stored = this.#properties === null ? undefined : ownValue(this.#properties, key)
    return stored !== undefined && equal(stored, value)
  }
}

/** A reject shows what it is known by; what it lacks (a request that could not be read has no event name) hides it from nobody. */
export function rejectMatches(filter: LiveFilter, reject: CapturedReject): boolean {
  if (!filter.rejected || !filter.lanes.has(reject.lane)) return false
  if (reject.name !== '' && filter.events?.has(reject.name) === false) return false
  return reject.distinctId === '' || filter.distinctIds?.has(reject.distinctId) !== false
}

function parsedObject(json: string): JsonObject | null {
  try {
    const value = parseJson(json)
    return isJsonObject(value) ? value : null
  } catch {
    return null // stored as an object by contract; whatever else it is, it has no properties
  }
}

/** As `/events/` compares: texts by what they say, numbers by value, everything else by its JSON text. */
function equal(stored: JsonValue, asked: JsonValue): boolean {
  const texts = equalTexts(asked)
  return equalTexts(stored).some(text => texts.includes(text))
}

function equalTexts(value: JsonValue): string[] {
  const number = numberOf(value)
  // Beyond it different integers are one double.
  const isExact = number !== undefined && Math.abs(number) <= Number.MAX_SAFE_INTEGER
  return isExact ? [textOf(value), String(number)] : [textOf(value)]
}
