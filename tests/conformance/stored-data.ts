// Reads the data stored after a vector's requests through the private API and compares it with the vector: events,
// persons, groups, warnings, replay messages. An expected `[]` means that there is nothing. Otherwise everything listed
// has to exist, and more may, unless the lists are known to be complete.

import { isUuid } from '#core/events/uuid.ts'
import {
  assertKnownFields,
  CannotRun,
  exactDifferences,
  type Fields,
  instantDifferences,
  isObject,
  presentDifferences,
  show,
  subsetDifferences,
  unequal,
} from './compare.ts'
import type { Instance } from './instance.ts'
import { tried } from './labels.ts'

/** The private API of an instance, or a replacement for it. */
export type StoredData = Pick<Instance, 'api' | 'call'>

type Compare = (source: StoredData, expected: never) => Promise<string[]>

const comparisons: Readonly<Record<string, Compare>> = {
  stored_events: compareEvents,
  stored_events_count: compareEventCount,
  persons: comparePersons,
  persons_deleted: comparePersonsDeleted,
  person_distinct_ids: compareDistinctIds,
  group_types: compareGroupTypes,
  groups: compareGroups,
  warnings: compareWarnings,
  replay_messages: compareReplayMessages,
}

export const storedDataFields = Object.keys(comparisons)

/** Lists that a vector may contain in part only, by the path of the whole list. */
const wholeLists: Readonly<Record<string, (source: StoredData) => Promise<readonly Fields[]>>> = {
  stored_events: source => listOf(source, '/events/?limit=1000'),
  persons: source => listOf(source, '/persons/?limit=1000'),
  groups: listGroups,
}

/**
 * Compares the stored data with the vector. Everything must have been processed before.
 * @param isWhole whether an event, person or group that the vector does not list is a difference.
 */
export async function compareStoredData(source: StoredData, vector: Fields, isWhole: boolean): Promise<string[]> {
  const found: string[] = []
  for (const [field, list] of Object.entries(isWhole ? wholeLists : {})) {
    if (!Object.hasOwn(vector, field)) continue
    const expectedCount = (vector[field] as unknown[]).length
    found.push(...exactDifferences(expectedCount, (await list(source)).length, `number of ${field}`))
  }
  for (const [field, compare] of Object.entries(comparisons)) {
    if (Object.hasOwn(vector, field)) found.push(...(await compare(source, vector[field] as never)))
  }
  return found
}

const base = '/api/projects/@current'

async function listOf(source: StoredData, path: string): Promise<Fields[]> {
  const { results } = await source.api<{ results: Fields[] }>('GET', `${base}${path}`)
  return results
}

async function compareEvents(source: StoredData, expected: readonly Fields[]): Promise<string[]> {
  const events = await listOf(source, '/events/?limit=1000')
  if (expected.length === 0 && events.length > 0) return [`stored_events: there are ${show(events)}`]
  return matchEach(expected, events, 'stored_events', compareEvent)
}

/** Pairs each expected object with the actual one that differs least from it. */
function matchEach(
  expected: readonly Fields[],
  actual: readonly Fields[],
  what: string,
  compare: (expected: Fields, actual: Fields, path: string) => string[],
): string[] {
  const free = new Set(actual)
  return expected.flatMap((one, index) => {
    const path = `${what}[${index}]`
    const ranked = [...free].map(candidate => ({ candidate, found: tried(one, () => compare(one, candidate, path)) }))
    const best = ranked.sort((a, b) => a.found.length - b.found.length)[0]
    if (best === undefined) return [`${path}: there is no more of them; expected ${show(one)}`]
    free.delete(best.candidate)
    return compare(one, best.candidate, path)
  })
}

const eventTexts = ['uuid', 'event', 'distinct_id', 'elements_chain', 'person_id', 'person_mode', 'lane']
const eventFlags = ['historical_migration', 'import_job_id']
const instants = ['timestamp', 'created_at', 'captured_at', 'person_created_at']
const bags = ['properties', 'person_properties']

function compareEvent(expected: Fields, actual: Fields, path: string): string[] {
  assertKnownFields(expected, 'a stored event', [
    ...[...eventTexts, ...eventFlags, ...instants, 'uuid_version', 'uuid_unix_ms'],
    ...bags.flatMap(bag => [bag, `${bag}_exact`, `${bag}_absent`]),
  ])
  const uuid = String(actual.uuid)
  return Object.entries(expected).flatMap(([field, value]) => {
    const at = `${path}.${field}`
    if (field === 'uuid_version') return exactDifferences(value, Number.parseInt(uuid[14]!, 16), at)
    if (field === 'uuid_unix_ms')
      return exactDifferences(value, Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16), at)
    return compareField(field, value, actual, at)
  })
}

/** Compares a field of an event, a person or a group: as an instant, as properties in one of three ways, or exactly. */
function compareField(field: string, value: unknown, actual: Fields, at: string): string[] {
  if (instants.includes(field)) return instantDifferences(value, actual[field], at)
  const [, bag, way] = /^(properties|person_properties|group_properties)(_exact|_absent)?$/.exec(field) ?? []
  if (bag === undefined) return exactDifferences(value, actual[field], at)
  if (way === '_absent') return presentDifferences(value as string[], actual[bag], at)
  if (way === '_exact' || bag === 'group_properties') return exactDifferences(value, actual[bag], at)
  return compareProperties(value as Fields, actual[bag], at)
}

/** Compares as a subset, and so the two maps inside an event's properties. */
function compareProperties(expected: Fields, actual: unknown, at: string): string[] {
  return Object.entries(expected).flatMap(([key, value]) => {
    const seen = isObject(actual) ? actual[key] : undefined
    if ((key === '$set' || key === '$set_once') && isObject(value) && isObject(seen))
      return subsetDifferences(value, seen, `${at}.${key}`)
    if (key === '$sent_at') return instantDifferences(value, seen, `${at}.${key}`)
    return exactDifferences(value, seen, `${at}.${key}`)
  })
}

async function compareEventCount(source: StoredData, expected: number): Promise<string[]> {
  const events = await listOf(source, '/events/?limit=1000')
  return exactDifferences(expected, events.length, 'stored_events_count')
}

async function comparePersons(source: StoredData, expected: readonly Fields[]): Promise<string[]> {
  const persons = await listOf(source, '/persons/?limit=1000')
  if (expected.length === 0 && persons.length > 0) return [`persons: there are ${show(persons)}`]
  return matchEach(expected, persons, 'persons', comparePerson)
}

function comparePerson(expected: Fields, actual: Fields, path: string): string[] {
  assertKnownFields(expected, 'a person', [
    ...['uuid', 'distinct_ids', 'is_identified', 'created_at', 'version', 'version_min'],
    ...['properties', 'properties_exact', 'properties_absent'],
  ])
  return Object.entries(expected).flatMap(([field, value]) => {
    const at = `${path}.${field}`
    if (field === 'distinct_ids')
      return exactDifferences([...(value as string[])].sort(), [...(actual.distinct_ids as string[])].sort(), at)
    if (field === 'version_min')
      return Number(actual.version) >= Number(value) ? [] : [unequal(at, value, actual.version)]
    return compareField(field, value, actual, at)
  })
}

async function comparePersonsDeleted(source: StoredData, uuids: readonly string[]): Promise<string[]> {
  const answers = uuids.map(async uuid => {
    if (!isUuid(uuid)) throw new CannotRun(`persons_deleted has ${show(uuid)}, which is no uuid`)
    const { status } = await source.call('GET', `${base}/persons/${uuid}/`)
    return exactDifferences(404, status, `persons_deleted ${uuid}`)
  })
  return (await Promise.all(answers)).flat()
}

async function compareDistinctIds(source: StoredData, expected: readonly Fields[]): Promise<string[]> {
  const answers = expected.map(async row => {
    assertKnownFields(row, 'a distinct id', ['distinct_id', 'person_id', 'version'])
    const id = String(row.distinct_id)
    const [person] = await listOf(source, `/persons/?distinct_id=${encodeURIComponent(id)}`)
    const versions = (person?.distinct_id_versions ?? {}) as Fields
    const actual: Fields = { distinct_id: id, person_id: person?.uuid, version: versions[id] }
    return subsetDifferences(row, actual, `person_distinct_ids ${id}`)
  })
  return (await Promise.all(answers)).flat()
}

async function groupTypesOf(source: StoredData): Promise<Record<string, number>> {
  const types = await source.api<{ group_type: string; group_type_index: number }[]>('GET', `${base}/groups_types/`)
  return Object.fromEntries(types.map(({ group_type, group_type_index }) => [group_type, group_type_index]))
}

async function compareGroupTypes(source: StoredData, expected: Fields): Promise<string[]> {
  return exactDifferences(expected, await groupTypesOf(source), 'group_types')
}

async function listGroups(source: StoredData): Promise<Fields[]> {
  const indexes = Object.values(await groupTypesOf(source))
  const lists = indexes.map(index => listOf(source, `/groups/?group_type_index=${index}&limit=1000`))
  return (await Promise.all(lists)).flat()
}

async function compareGroups(source: StoredData, expected: readonly Fields[]): Promise<string[]> {
  const groups = await listGroups(source)
  if (expected.length === 0 && groups.length > 0) return [`groups: there are ${show(groups)}`]
  return matchEach(expected, groups, 'groups', (one, group, path) => {
    const fields = ['group_type_index', 'group_key', 'group_properties', 'created_at', 'version']
    assertKnownFields(one, 'a group', fields)
    return Object.entries(one).flatMap(([field, value]) => compareField(field, value, group, `${path}.${field}`))
  })
}

async function compareWarnings(source: StoredData, expected: readonly string[]): Promise<string[]> {
  const types = (await listOf(source, '/ingestion_warnings/')).map(({ type }) => type)
  if (expected.length === 0) return exactDifferences([], types, 'warnings')
  return expected.filter(type => !types.includes(type)).map(type => `warnings: ${type} is not among ${show(types)}`)
}

async function compareReplayMessages(source: StoredData, expected: readonly Fields[]): Promise<string[]> {
  const messages = await listOf(source, '/replay_messages/')
  if (expected.length === 0) return exactDifferences([], messages, 'replay_messages')
  return matchEach(expected, messages, 'replay_messages', subsetDifferences)
}
