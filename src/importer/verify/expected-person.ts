// The person that the events of an import result in, by the service's rules for imported properties.
// Source: docs/wire/import.md §2.10, §3.4.

import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject, ownValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { emptyProfile, type Profile } from '#core/persons/profile.ts'
import { applyImportUpdate } from '#core/processing/properties/import-update.ts'
import { unsetKeys } from '#core/processing/properties/person-update.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { findJoinedId } from '../records/joined-id.ts'
import { usPerMs } from '../records/source-time.ts'
import { hasProfile, readPersonMaps } from './person-maps.ts'

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
export function describesPerson(event: ImportedEvent): boolean {
  if (findJoinedId(event) !== null) return true
  const { set, setOnce } = readPersonMaps(event)
  return set !== null || setOnce !== null || readUnset(event).length > 0
}

export function addToPerson(person: ExpectedPerson, event: ImportedEvent): void {
  const { distinctId, timeUs, uuid } = event
  person.ids.add(distinctId)
  const other = event.event === '$identify' ? findJoinedId(event) : null
  if (other !== null) person.ids.add(other)
  const { set, setOnce } = readPersonMaps(event)
  const timestampMs = Math.floor(timeUs / usPerMs)
  const update = { set, setOnce, unset: readUnset(event), timestampMs, uuid, importJobId: 1 }
  person.profile = applyImportUpdate(person.profile, update) ?? person.profile
}

function readUnset(event: ImportedEvent): readonly string[] {
  return hasProfile(event) ? unsetKeys(event.properties.$unset) : []
}

/** @param stored the person from the private API. */
export function findPersonDifference({ ids, profile }: ExpectedPerson, stored: JsonObject): PersonDifference | null {
  const properties = isJsonObject(stored.properties) ? (stored.properties as JsonObject) : {}
  for (const key of Object.keys(profile.marks)) {
    const expected = ownValue(profile.properties as JsonObject, key)
    const found = ownValue(properties, key)
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

/** The API shows only some ids of a person with very many. */
export function readDistinctIds(stored: JsonObject | undefined): readonly string[] {
  const ids = stored?.distinct_ids
  return Array.isArray(ids) ? ids.filter(id => typeof id === 'string') : []
}
