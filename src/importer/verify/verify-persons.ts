// Compares random persons with what a published import says about their properties and ids. Persons that other events have
// touched may differ. Source: docs/wire/import.md §2.10, §3.4.

import type { JsonObject } from '#core/json.ts'
import type { PersonsCheck } from '#importer/stages/report/import-report.ts'
import { findMergedDistinctId } from '../records/generated-events.ts'
import type { ImportedEvent } from '../records/imported-event.ts'
import { readSentEvents, type SentJob } from '../send/sent-events.ts'
import { readObjectList, type ServiceApi } from '../send/service-api.ts'
import {
  addEventToPerson,
  createExpectedPerson,
  type ExpectedPerson,
  findPersonDifference,
  type GetPersonId,
  type PersonDifference,
  PersonSampler,
  personsDefault,
  readDistinctIds,
} from '../stages/expected/expected-persons.ts'

export interface VerifyPersonsOptions {
  /** The job and its retries. */
  readonly sent: readonly SentJob[]
  /** The id of the job at the service. */
  readonly jobId: string
  readonly personOf: GetPersonId
  /** Persons chosen by an earlier pass over all sent events; if absent or null, this function makes that pass. */
  readonly candidates?: readonly ExpectedPerson[] | null
  readonly api: Pick<ServiceApi, 'call'>
  readonly count?: number
}

export async function verifyPersons(options: VerifyPersonsOptions): Promise<PersonsCheck> {
  const { sent, personOf, count = personsDefault } = options
  const candidates = options.candidates ?? (await choosePersons(readSentEvents(sent), personOf, count))
  const seen: SeenPerson[] = []
  const compared = new Set<string>()
  for (const expected of candidates) {
    if (compared.size === count) break
    const each = { expected, stored: await readStoredPerson(expected.id, options.api) }
    seen.push(each)
    compared.add(toPersonKey(each))
  }
  const differing = await compareWithAllIds(seen.filter(isDifferent), sent)
  const elsewhere = await findContestedIds(differing, sent)
  const differences = new Map<string, string>()
  const newer = new Set<string>()
  for (const each of differing) {
    const difference = findDifference(each)
    const key = toPersonKey(each)
    if (difference === null || differences.has(key)) continue
    if (difference.missingId !== null && elsewhere.has(difference.missingId)) continue
    if (await hasEventsOutsideJob(each.stored, difference, options)) newer.add(key)
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

/** Events of the export may link ids themselves, so several ids may belong to one person, who must be counted only once. */
function toPersonKey({ expected, stored }: SeenPerson): string {
  return stored === undefined ? `no person has ${expected.id}` : String(stored.uuid)
}

interface SeenPerson {
  readonly expected: ExpectedPerson
  readonly stored: JsonObject | undefined
}

function findDifference({ expected, stored }: SeenPerson): PersonDifference | null {
  if (stored === undefined) return { message: 'there is no such person', missingId: null }
  return findPersonDifference(expected, stored)
}

function isDifferent(seen: SeenPerson): boolean {
  return findDifference(seen) !== null
}

async function readStoredPerson(distinctId: string, api: VerifyPersonsOptions['api']): Promise<JsonObject | undefined> {
  return readObjectList(await api.call('GET', '/persons/', { query: { distinct_id: distinctId } }), 'results')[0]
}

/**
 * Compares differing persons again with the events of all ids stored for them: events of the export may link ids, so that a
 * person has more ids than the generated links imply.
 */
async function compareWithAllIds(
  differing: readonly SeenPerson[],
  sent: readonly SentJob[],
): Promise<readonly SeenPerson[]> {
  const whole = differing.map(({ expected, stored }) => ({ expected: createExpectedPerson(expected.id), stored }))
  const byId = new Map<string, ExpectedPerson[]>()
  for (const { expected, stored } of whole)
    for (const id of new Set([expected.id, ...readDistinctIds(stored)]))
      byId.set(id, [...(byId.get(id) ?? []), expected])
  if (byId.size > 0)
    for await (const event of readSentEvents(sent))
      for (const person of byId.get(event.distinctId) ?? []) addEventToPerson(person, event)
  return whole.filter(isDifferent)
}

/**
 * Finds ids that one person lacks because events of the import link them to another person too: a device belongs to the
 * first user identified on it, and an identified person is not merged with another.
 */
async function findContestedIds(
  differing: readonly SeenPerson[],
  sent: readonly SentJob[],
): Promise<ReadonlySet<string>> {
  const missing = new Map<string, Set<string>>()
  for (const each of differing) {
    const id = findDifference(each)?.missingId ?? null
    if (id !== null) missing.set(id, new Set([id, ...readDistinctIds(each.stored)]))
  }
  const contested = new Set<string>()
  if (missing.size === 0) return contested
  for await (const event of readSentEvents(sent)) {
    const other = findMergedDistinctId(event)
    if (other === null) continue
    if (missing.has(event.distinctId)) contested.add(event.distinctId)
    const ids = missing.get(other)
    if (ids !== undefined && !ids.has(event.distinctId)) contested.add(other)
  }
  return contested
}

async function choosePersons(
  events: AsyncIterable<ImportedEvent>,
  personOf: GetPersonId,
  count: number,
): Promise<ExpectedPerson[]> {
  const choice = new PersonSampler(personOf, count)
  for await (const event of events) choice.add(event)
  return choice.chosen()
}

const eventsLooked = 1_000

/**
 * Whether events from outside the import explain the difference: events of the person, or of the person that has the
 * missing id.
 */
async function hasEventsOutsideJob(
  stored: JsonObject | undefined,
  { missingId }: PersonDifference,
  { api, jobId }: VerifyPersonsOptions,
): Promise<boolean> {
  const holder = missingId === null ? undefined : await readStoredPerson(missingId, api)
  for (const person of [stored, holder]) {
    if (person === undefined) continue
    const query = { person_id: String(person.uuid), limit: String(eventsLooked) }
    const events = readObjectList(await api.call('GET', '/events/', { query }), 'results')
    if (events.some(({ import_job_id }) => String(import_job_id) !== jobId)) return true
  }
  return false
}
