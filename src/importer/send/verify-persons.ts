// Compares persons at random with what a published import says of them: their properties and their ids. Persons that other
// events have touched may differ. Source: docs/wire/import.md §2.10, §3.4.

import { hash } from 'node:crypto'
import { isJsonObject, type JsonObject, type JsonValue, ownValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import type { PersonMaps } from '#core/processing/properties/mapped-properties.ts'
import type { StagedJob } from '../job/staged-part.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { listAt, type ServiceApi } from './job-api.ts'
import { personMaps } from './person-maps.ts'

export interface PersonsCheck {
  readonly compared: number
  readonly equal: number
  /** Differ, but were touched by live events, another import or a merge as well. */
  readonly newer: number
  readonly differences: readonly string[]
}

interface KnownValue {
  readonly value: JsonValue
  readonly timeUs: number
  readonly uuid: string
}

interface ExpectedPerson {
  readonly rank: string
  /** An id that leads to the person. */
  readonly id: string
  readonly ids: Set<string>
  readonly set: Map<string, KnownValue>
  readonly once: Map<string, KnownValue>
}

const personsDefault = 50

/** @param jobId at the service. */
export async function verifyPersons(
  job: StagedJob,
  jobId: string,
  personOf: (distinctId: string) => string,
  api: ServiceApi,
  count: number = personsDefault,
): Promise<PersonsCheck> {
  const persons = await chosenPersons(job, personOf, count)
  const found = new Map<ExpectedPerson, JsonObject | undefined>()
  for (const person of persons)
    found.set(person, listAt(await api.call('GET', '/persons/', { query: { distinct_id: person.id } }), 'results')[0])
  const joined = await joinedPersons(job, found, personOf)
  const differences: string[] = []
  let [equal, newer] = [0, 0]
  for (const [person, stored] of found) {
    const difference =
      stored === undefined ? 'there is no such person' : differenceOf(joined.get(person) ?? person, stored)
    if (difference === null) equal++
    else if (stored !== undefined && (await isTouchedByOthers(String(stored.uuid), jobId, api))) newer++
    else differences.push(`${person.id}: ${difference}`)
  }
  return { compared: persons.length, equal, newer, differences }
}

/**
 * Exports may hold events that link ids themselves. Whoever has more ids than links of the import's own gave is looked at
 * once more with all that is said of any of them.
 */
async function joinedPersons(
  job: StagedJob,
  found: ReadonlyMap<ExpectedPerson, JsonObject | undefined>,
  personOf: (distinctId: string) => string,
) {
  const joined = new Map<ExpectedPerson, ExpectedPerson>()
  const byId = new Map<string, ExpectedPerson[]>()
  for (const [person, stored] of found) {
    const ids = idsOf(stored)
    const isJoined = ids.some(id => personOf(id) !== person.id)
    if (stored === undefined || !isJoined || differenceOf(person, stored) === null) continue
    const whole = newPerson(person.id)
    joined.set(person, whole)
    for (const id of ids) byId.set(id, [...(byId.get(id) ?? []), whole])
  }
  if (joined.size === 0) return joined
  for await (const event of eventsOf(job))
    for (const person of byId.get(event.distinctId) ?? []) addTo(person, event, personMaps(event))
  return joined
}

async function* eventsOf(job: StagedJob): AsyncGenerator<ImportedEvent> {
  for (const { event } of job.generatedEvents()) yield event
  for (const part of job.parts)
    for await (const { result } of job.readPart(part)) if (result.kind === 'events') yield* result.events
}

function newPerson(id: string): ExpectedPerson {
  return { rank: hash('sha1', id), id, ids: new Set([id]), set: new Map(), once: new Map() }
}

/** The persons whose hash is smallest, of those of whom anything is said: one pass, and each is seen from its first event. */
async function chosenPersons(job: StagedJob, personOf: (id: string) => string, count: number) {
  let chosen = new Map<string, ExpectedPerson>()
  let worst = 'g'
  const add = (event: ImportedEvent): void => {
    const maps = personMaps(event)
    if (event.event !== '$identify' && maps.set === null && maps.setOnce === null) return
    const id = personOf(event.distinctId)
    const person = chosen.get(id) ?? newPerson(id)
    if (person.rank > worst) return
    chosen.set(id, person)
    addTo(person, event, maps)
    if (chosen.size < 4 * count) return
    const best = [...chosen].toSorted(([, a], [, b]) => (a.rank < b.rank ? -1 : 1)).slice(0, count)
    chosen = new Map(best)
    worst = best.at(-1)![1].rank
  }
  for await (const event of eventsOf(job)) add(event)
  return [...chosen.values()].toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).slice(0, count)
}

function addTo(
  { ids, set, once }: ExpectedPerson,
  { event, distinctId, timeUs, uuid, properties }: ImportedEvent,
  maps: PersonMaps,
): void {
  ids.add(distinctId)
  if (event === '$identify' && typeof properties.$anon_distinct_id === 'string') ids.add(properties.$anon_distinct_id)
  // The latest `$set` counts, and the earliest `$set_once`, whatever the order of arrival.
  for (const [key, value] of Object.entries(maps.set ?? {})) {
    const known = set.get(key)
    if (known === undefined || isBefore(known, { timeUs, uuid })) set.set(key, { value, timeUs, uuid })
  }
  for (const [key, value] of Object.entries(maps.setOnce ?? {})) {
    const known = once.get(key)
    if (known === undefined || isBefore({ timeUs, uuid }, known)) once.set(key, { value, timeUs, uuid })
  }
  const unset = properties.$unset
  if (Array.isArray(unset)) for (const key of unset) if (typeof key === 'string') set.delete(key)
}

function isBefore(a: Omit<KnownValue, 'value'>, b: Omit<KnownValue, 'value'>): boolean {
  return a.timeUs < b.timeUs || (a.timeUs === b.timeUs && a.uuid < b.uuid)
}

function differenceOf({ ids, set, once }: ExpectedPerson, found: JsonObject): string | null {
  const properties: JsonObject = isJsonObject(found.properties) ? (found.properties as JsonObject) : {}
  const expected = new Map([...once, ...set].map(([key, { value }]) => [key, value]))
  for (const [key, value] of expected) {
    const stored = ownValue(properties, key)
    if (stored === undefined) return `the property ${key} is missing`
    if (!isSameJson(stored, value)) return `the property ${key} is ${JSON.stringify(stored).slice(0, 100)}`
  }
  const shown = idsOf(found)
  const areAllShown = Number(found.distinct_id_count) <= shown.length
  const missing = areAllShown ? [...ids].find(id => !shown.includes(id)) : undefined
  return missing === undefined ? null : `the id ${missing} is not one of its ids`
}

/** A person of very many ids shows only some of them. */
function idsOf(found: JsonObject | undefined): readonly string[] {
  const ids = found?.distinct_ids
  return Array.isArray(ids) ? ids.filter(id => typeof id === 'string') : []
}

const eventsLooked = 1_000

async function isTouchedByOthers(uuid: string, jobId: string, api: ServiceApi): Promise<boolean> {
  const query = { person_id: uuid, limit: String(eventsLooked) }
  const events = listAt(await api.call('GET', '/events/', { query }), 'results')
  return events.some(({ import_job_id }) => String(import_job_id) !== jobId)
}
