// The persons to compare after publishing, and what the events of the import make of them by the service's rules for imported
// properties. They are chosen while the rehearsal reads all events. Source: docs/wire/import.md §2.10, §3.4.

import { hash } from 'node:crypto'
import { chooseLane } from '#core/capture/normalize-event.ts'
import { groupEventNames } from '#core/events/event-names.ts'
import { getOwnValue, isJsonObject, type JsonObject } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { emptyProfile, type Profile } from '#core/persons/profile.ts'
import { applyImportUpdate } from '#core/processing/properties/import-update.ts'
import { buildPersonSetMaps, type PersonMaps, readClientSetMap } from '#core/processing/properties/mapped-properties.ts'
import { parseUnsetKeys } from '#core/processing/properties/person-update.ts'
import { findMergedDistinctId } from '../../records/generated-events.ts'
import type { ImportedEvent } from '../../records/imported-event.ts'
import { usPerMs } from '../../records/source-time.ts'

export interface ExpectedPerson {
  readonly rank: string
  /** One of the person's ids. */
  readonly id: string
  readonly ids: Set<string>
  profile: Profile
}

/** A description of the difference, and the missing id if that is the difference. */
export interface PersonDifference {
  readonly message: string
  readonly missingId: string | null
}

export function createExpectedPerson(id: string): ExpectedPerson {
  return { rank: hash('sha1', id), id, ids: new Set([id]), profile: emptyProfile }
}

/** Whether the event says anything about its person that can be compared. */
function describesPerson(event: ImportedEvent): boolean {
  if (findMergedDistinctId(event) !== null) return true
  const { set, setOnce } = readPersonSetMaps(event)
  return set !== null || setOnce !== null || readUnset(event).length > 0
}

export function addEventToPerson(person: ExpectedPerson, event: ImportedEvent): void {
  const { distinctId, timeUs, uuid } = event
  person.ids.add(distinctId)
  const other = event.event === '$identify' ? findMergedDistinctId(event) : null
  if (other !== null) person.ids.add(other)
  const { set, setOnce } = readPersonSetMaps(event)
  const timestampMs = Math.floor(timeUs / usPerMs)
  const update = { set, setOnce, unset: readUnset(event), timestampMs, uuid, importJobId: 1 }
  person.profile = applyImportUpdate(person.profile, update) ?? person.profile
}

function readUnset(event: ImportedEvent): readonly string[] {
  return hasProfile(event) ? parseUnsetKeys(event.properties.$unset) : []
}

/** @param stored the person from the private API. */
export function findPersonDifference({ ids, profile }: ExpectedPerson, stored: JsonObject): PersonDifference | null {
  const properties = isJsonObject(stored.properties) ? (stored.properties as JsonObject) : {}
  for (const key of Object.keys(profile.marks)) {
    const expected = getOwnValue(profile.properties as JsonObject, key)
    const found = getOwnValue(properties, key)
    if (expected === undefined) {
      if (found !== undefined)
        return createPropertyDifference(`the property ${key} is still there, although it was unset`)
    } else if (found === undefined) return createPropertyDifference(`the property ${key} is missing`)
    else if (!isSameJson(found, expected))
      return createPropertyDifference(`the property ${key} is ${JSON.stringify(found).slice(0, 100)}`)
  }
  const shown = readDistinctIds(stored)
  const areAllShown = Number(stored.distinct_id_count) <= shown.length
  const missingId = areAllShown ? [...ids].find(id => !shown.includes(id)) : undefined
  return missingId === undefined ? null : { message: `${missingId} is missing from its ids`, missingId }
}

function createPropertyDifference(message: string): PersonDifference {
  return { message, missingId: null }
}

/** The distinct ids that the API shows of a person; it shows only some if there are very many. */
export function readDistinctIds(stored: JsonObject | undefined): readonly string[] {
  const ids = stored?.distinct_ids
  return Array.isArray(ids) ? ids.filter(id => typeof id === 'string') : []
}

export const personsDefault = 50
/** More ids than persons are chosen, since several ids may turn out to belong to one person. */
const idsPerPerson = 4
/** Bound of the cache of ids that were not chosen, which saves hashing the id of most events: about 10 MB. */
const passedOverMax = 50_000

/** @returns the user that an id is linked to, or the id itself. */
export type GetPersonId = (distinctId: string) => string

/** Chooses persons in one pass over the events: of all ids that the import describes, those with the smallest hashes. */
export class PersonSampler {
  readonly #personOf: GetPersonId
  readonly #kept: number
  #chosen = new Map<string, ExpectedPerson>()
  /** The largest chosen hash; until enough ids are chosen, a text larger than any hash. */
  #worst = 'g'
  /** Ids that can never be chosen, since `#worst` only decreases. */
  readonly #passedOver = new Set<string>()

  constructor(personOf: GetPersonId, count = personsDefault) {
    this.#personOf = personOf
    this.#kept = idsPerPerson * count
  }

  add(event: ImportedEvent): void {
    if (this.#passedOver.has(event.distinctId) || !describesPerson(event)) return
    const id = this.#personOf(event.distinctId)
    const person = this.#chosen.get(id) ?? createExpectedPerson(id)
    if (person.rank > this.#worst) {
      this.#passOver(event.distinctId)
      return
    }
    this.#chosen.set(id, person)
    addEventToPerson(person, event)
    if (this.#chosen.size < 2 * this.#kept) return
    const best = this.chosen()
    this.#chosen = new Map(best.map(each => [each.id, each]))
    this.#worst = best.at(-1)!.rank
  }

  /** Sorted by hash. */
  chosen(): ExpectedPerson[] {
    return [...this.#chosen.values()].toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, this.#kept)
  }

  #passOver(id: string): void {
    if (this.#passedOver.size === passedOverMax) this.#passedOver.clear()
    // Copy the id: it may be a substring of its record's text, which it would keep in memory.
    this.#passedOver.add(Buffer.from(id, 'utf16le').toString('utf16le'))
  }
}

/** The `$set` and `$set_once` of an event as the service reads them, with event properties that describe the person. */
export function readPersonSetMaps(event: ImportedEvent): PersonMaps {
  if (!hasProfile(event)) return { set: null, setOnce: null }
  const { properties } = event
  const keys = Object.keys(properties)
  return buildPersonSetMaps(
    properties,
    keys,
    readClientSetMap(properties.$set, null),
    readClientSetMap(properties.$set_once, null),
  )
}

/** Whether the event may change its person. AI events never do. */
function hasProfile({ event, properties }: ImportedEvent): boolean {
  const isWithout = properties.$process_person_profile === false || groupEventNames.has(event)
  return !isWithout && chooseLane(event, true) !== 'ai'
}
