// Rows of PostHog's persons export, each with one id of one person. It is the only record of merges made through an API.
// Source: docs/wire/import.md §1.8.

import { type JsonObject, type JsonValue, ownValue } from '#core/json.ts'
import { rootUuid } from '#importer/records/deterministic-uuid.ts'
import { idText, isIllegalId, legalId, requireDistinctId } from '#importer/records/distinct-ids.ts'
import type { SourceContext, SourceFact, SourceRecord } from '#importer/records/import-source.ts'
import { type Conversion, RecordReject, skipRecord } from '#importer/records/imported-event.ts'
import { readTextField } from '#importer/records/record-fields.ts'
import { readTimeField, type TimeWindow } from '#importer/records/source-time.ts'

/** @param table the table of all records; null takes it from each record's file. */
export function isPersonRow({ value, table: ofFile }: SourceRecord, table: string | null): boolean {
  if (Object.hasOwn(value, 'event')) return false
  return Object.hasOwn(value, 'person_distinct_id_version') || /^persons?\b|distinct_id/.test(table ?? ofFile ?? '')
}

/** @throws RecordReject */
export function readPersonRowTime(row: JsonObject, window: TimeWindow): number {
  const field = readTextField(row, 'timestamp') === null ? 'created_at' : 'timestamp'
  return readTimeField(row, field, { zone: 'UTC' }, window)
}

type FindFact = SourceContext['findFact']

/** The ids of a person as a linked list, in the order in which they were read: the first, the last, and the next of each. */
const [firstKind, lastKind, nextKind] = ['person', 'person_last', 'person_next'] as const
/** The highest version of an id's rows, with its person, or without one if the id was deleted. */
const ownerKind = 'person_of_id'

/** Ids can move between persons, and tables also contain replaced rows, so the highest version counts. */
export function readPersonRowFacts({ value }: SourceRecord, findFact: FindFact): SourceFact[] {
  const personId = readTextField(value, 'person_id')
  const distinctId = idText(ownValue(value, 'distinct_id'))
  if (personId === null || distinctId === null || isIllegalId(distinctId)) return []
  const version = readVersion(value)
  const isDeleted = isTrue(ownValue(value, 'is_deleted'))
  const owner = findOwner(distinctId, findFact)
  const facts: SourceFact[] = []
  if (version !== null && (owner === null || version >= owner.version))
    facts.push({ kind: ownerKind, key: distinctId, value: `${version} ${isDeleted ? '' : personId}` })
  const isListed = findFact(nextKind, formatNextKey(personId, distinctId)) !== null
  if (isDeleted || isListed) return facts
  const last = findFact(lastKind, personId)
  facts.push({ kind: lastKind, key: personId, value: distinctId })
  facts.push({ kind: nextKind, key: formatNextKey(personId, distinctId), value: '' })
  if (last === null) facts.push({ kind: firstKind, key: personId, value: distinctId })
  else facts.push({ kind: nextKind, key: formatNextKey(personId, last), value: distinctId })
  return facts
}

/** @throws RecordReject */
export function convertPersonRow(
  record: SourceRecord,
  { allowsMerges, window }: { readonly allowsMerges: boolean; readonly window: TimeWindow },
  findFact: FindFact,
): Conversion {
  const { value } = record
  const alias = requireDistinctId(legalId(ownValue(value, 'distinct_id')))
  const personId = readTextField(value, 'person_id') ?? ''
  if (isTrue(ownValue(value, 'is_deleted')) || !belongsTo(alias, personId, findFact)) return skipRecord('filtered')
  const distinctId = findMergeTarget(personId, findFact)
  if (distinctId === null || distinctId === alias) return skipRecord('filtered')
  if (!allowsMerges) throw new RecordReject('merge_needs_approval', 'distinct_id')
  const timeUs = readPersonRowTime(value, window)
  const uuid = rootUuid('merge', 'posthog', distinctId, alias)
  return {
    events: [{ uuid, event: '$merge_dangerously', sourceName: 'persons', distinctId, timeUs, properties: { alias } }],
  }
}

/** The id into which all others of the person are merged: the first that still belongs to it. */
function findMergeTarget(personId: string, findFact: FindFact): string | null {
  let id = findFact(firstKind, personId) ?? ''
  while (id !== '' && !belongsTo(id, personId, findFact)) id = findFact(nextKind, formatNextKey(personId, id)) ?? ''
  return id === '' ? null : id
}

function belongsTo(distinctId: string, personId: string, findFact: FindFact): boolean {
  const owner = findOwner(distinctId, findFact)
  return owner === null || owner.personId === personId
}

/** @returns null for an id whose rows have no version: all of them count. */
function findOwner(distinctId: string, findFact: FindFact): { version: number; personId: string } | null {
  const fact = findFact(ownerKind, distinctId)
  if (fact === null) return null
  const end = fact.indexOf(' ')
  return { version: Number(fact.slice(0, end)), personId: fact.slice(end + 1) }
}

function formatNextKey(personId: string, distinctId: string): string {
  return JSON.stringify([personId, distinctId])
}

function readVersion(row: JsonObject): number | null {
  const text = idText(ownValue(row, 'person_distinct_id_version') ?? ownValue(row, 'version'))
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null
}

/** ClickHouse writes booleans as 0 and 1. */
function isTrue(value: JsonValue | undefined): boolean {
  return ['true', '1'].includes(idText(value)?.toLowerCase() ?? String(value))
}
