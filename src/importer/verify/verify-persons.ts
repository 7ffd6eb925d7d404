// Compares persons at random with what a published import says of them: their properties and their ids. Persons that other
// events have touched may differ. Source: docs/wire/import.md §2.10, §3.4.

import type { JsonObject } from '#core/json.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { joinedId } from '../records/joined-id.ts'
import { listAt, type ServiceApi } from '../send/job-api.ts'
import { type SentJob, sentEvents } from '../send/sent-events.ts'
import { PersonChoice, type PersonOf, personsDefault } from './chosen-persons.ts'
import {
  addToPerson,
  differenceOfPerson,
  type ExpectedPerson,
  newPerson,
  type PersonDifference,
  shownIds,
} from './expected-person.ts'

export interface PersonsCheck {
  readonly compared: number
  readonly equal: number
  /** Differ, but were touched by live events, another import or a merge as well. */
  readonly newer: number
  readonly differences: readonly string[]
}

export interface VerifyPersonsOptions {
  /** The job, and what was repaired and sent again. */
  readonly sent: readonly SentJob[]
  /** The id of the job at the service. */
  readonly jobId: string
  readonly personOf: PersonOf
  /** Whom a pass over all that was sent has chosen before; absent or null: this one reads it. */
  readonly candidates?: readonly ExpectedPerson[] | null
  readonly api: Pick<ServiceApi, 'call'>
  readonly count?: number
}

export async function verifyPersons(options: VerifyPersonsOptions): Promise<PersonsCheck> {
  const { sent, personOf, count = personsDefault } = options
  const candidates = options.candidates ?? (await chosenPersons(sentEvents(sent), personOf, count))
  const seen: SeenPerson[] = []
  const compared = new Set<string>()
  for (const expected of candidates) {
    if (compared.size === count) break
    const each = { expected, stored: await storedPerson(expected.id, options.api) }
    seen.push(each)
    compared.add(personKey(each))
  }
  const differing = await lookedAtOnceMore(seen.filter(isDifferent), sent)
  const elsewhere = await contestedIds(differing, sent)
  const differences = new Map<string, string>()
  const newer = new Set<string>()
  for (const each of differing) {
    const difference = differenceOf(each)
    const key = personKey(each)
    if (difference === null || differences.has(key)) continue
    if (difference.missingId !== null && elsewhere.has(difference.missingId)) continue
    if (await isTouchedByOthers(each.stored, difference, options)) newer.add(key)
    else differences.set(key, `${each.expected.id}: ${difference.message}`)
  }
  const touched = newer.difference(differences).size
  return {
    compared: compared.size,
    equal: compared.size - touched - differences.size,
    newer: touched,
    differences: [...differences.values()],
  }
}

/** Events of the export may have joined ids themselves, so several ids may lead to one person, who counts once. */
function personKey({ expected, stored }: SeenPerson): string {
  return stored === undefined ? `no person has ${expected.id}` : String(stored.uuid)
}

interface SeenPerson {
  readonly expected: ExpectedPerson
  readonly stored: JsonObject | undefined
}

function differenceOf({ expected, stored }: SeenPerson): PersonDifference | null {
  if (stored === undefined) return { message: 'there is no such person', missingId: null }
  return differenceOfPerson(expected, stored)
}

function isDifferent(seen: SeenPerson): boolean {
  return differenceOf(seen) !== null
}

async function storedPerson(distinctId: string, api: VerifyPersonsOptions['api']): Promise<JsonObject | undefined> {
  return listAt(await api.call('GET', '/persons/', { query: { distinct_id: distinctId } }), 'results')[0]
}

/**
 * Exports may hold events that join ids themselves, so a person may have more ids than those that the import's own links
 * gave. Whoever differs is looked at with all that is said of any of the ids stored.
 */
async function lookedAtOnceMore(
  differing: readonly SeenPerson[],
  sent: readonly SentJob[],
): Promise<readonly SeenPerson[]> {
  const whole = differing.map(({ expected, stored }) => ({ expected: newPerson(expected.id), stored }))
  const byId = new Map<string, ExpectedPerson[]>()
  for (const { expected, stored } of whole)
    for (const id of new Set([expected.id, ...shownIds(stored)])) byId.set(id, [...(byId.get(id) ?? []), expected])
  if (byId.size > 0)
    for await (const event of sentEvents(sent))
      for (const person of byId.get(event.distinctId) ?? []) addToPerson(person, event)
  return whole.filter(isDifferent)
}

/**
 * Ids that are missing at one person because the import's own events name them for another too: a device belongs to
 * whoever is identified on it first, and somebody who is identified is joined with nobody else.
 */
async function contestedIds(differing: readonly SeenPerson[], sent: readonly SentJob[]): Promise<ReadonlySet<string>> {
  const missing = new Map<string, Set<string>>()
  for (const each of differing) {
    const id = differenceOf(each)?.missingId ?? null
    if (id !== null) missing.set(id, new Set([id, ...shownIds(each.stored)]))
  }
  const contested = new Set<string>()
  if (missing.size === 0) return contested
  for await (const event of sentEvents(sent)) {
    const other = joinedId(event)
    if (other === null) continue
    if (missing.has(event.distinctId)) contested.add(event.distinctId)
    const ids = missing.get(other)
    if (ids !== undefined && !ids.has(event.distinctId)) contested.add(other)
  }
  return contested
}

async function chosenPersons(
  events: AsyncIterable<ImportedEvent>,
  personOf: PersonOf,
  count: number,
): Promise<ExpectedPerson[]> {
  const choice = new PersonChoice(personOf, count)
  for await (const event of events) choice.add(event)
  return choice.chosen()
}

const eventsLooked = 1_000

/** Whether events of others are the reason: at the person, or at whoever has the id that it lacks. */
async function isTouchedByOthers(
  stored: JsonObject | undefined,
  { missingId }: PersonDifference,
  { api, jobId }: VerifyPersonsOptions,
): Promise<boolean> {
  const holder = missingId === null ? undefined : await storedPerson(missingId, api)
  for (const person of [stored, holder]) {
    if (person === undefined) continue
    const query = { person_id: String(person.uuid), limit: String(eventsLooked) }
    const events = listAt(await api.call('GET', '/events/', { query }), 'results')
    if (events.some(({ import_job_id }) => String(import_job_id) !== jobId)) return true
  }
  return false
}
