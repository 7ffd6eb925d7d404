// Converts records of a source as a job does: first the facts of all records, then the records one after another with
// one ledger.

import type { JsonObject } from '#core/json.ts'
import { convertRecord } from '#importer/records/convert-record.ts'
import { createRecordEvents } from '#importer/records/generated-events.ts'
import { createInMemoryLedger } from '#importer/records/import-ledger.ts'
import type { ImportSource, SourceRecord } from '#importer/records/import-source.ts'
import type { RecordNote, RecordRejectReason, SkipReason } from '#importer/records/imported-event.ts'
import { formatTime } from '#importer/records/source-time.ts'

export interface ShownEvent {
  readonly uuid: string
  readonly event: string
  readonly distinct_id: string
  readonly timestamp: string
  readonly properties: JsonObject
}

export type ShownOutcome =
  | { readonly events: readonly ShownEvent[]; readonly notes: readonly RecordNote[] }
  | { readonly rejected: { readonly reason: RecordRejectReason; readonly field: string | null } }
  | { readonly skipped: SkipReason }

/** The time of conversion for all vectors. */
export const conversionTimeMs = Date.UTC(2026, 0, 15)

export function convertRecords(
  source: ImportSource,
  values: readonly (JsonObject | { readonly table: string; readonly value: JsonObject })[],
  config: JsonObject = {},
): ShownOutcome[] {
  const records = values.map((each, index) => recordOf(each, index + 1))
  const facts = new Map<string, string>()
  const findFact = (kind: string, key: string) => facts.get(`${kind} ${key}`) ?? null
  const converter = source.prepare(config, { nowMs: conversionTimeMs, holdLiveWindow: false, findFact })
  for (const record of records)
    for (const { kind, key, value } of converter.factsOf?.(record) ?? []) facts.set(`${kind} ${key}`, value)
  const ledger = createInMemoryLedger()
  return records.map(record => {
    const outcome = convertRecord(converter, record)
    if ('rejected' in outcome) {
      const { reason, field } = outcome.rejected
      return { rejected: { reason, field } }
    }
    if ('skipped' in outcome) return outcome
    const { events, notes } = createRecordEvents(source.name, outcome, ledger)
    return { events: events.map(shown), notes }
  })
}

/** The events of records, each of which must give some. */
export function eventsOf(...args: Parameters<typeof convertRecords>): ShownEvent[] {
  return convertRecords(...args).flatMap(outcome => {
    if ('events' in outcome) return outcome.events
    throw new Error(`a record gives no event: ${JSON.stringify(outcome)}`)
  })
}

function recordOf(
  given: JsonObject | { readonly table: string; readonly value: JsonObject },
  ordinal: number,
): SourceRecord {
  if (typeof given.table === 'string' && 'value' in given)
    return { table: given.table, value: given.value as JsonObject, ordinal }
  return { table: null, value: given as JsonObject, ordinal }
}

function shown({
  uuid,
  event,
  distinctId,
  timeUs,
  properties,
}: {
  readonly uuid: string
  readonly event: string
  readonly distinctId: string
  readonly timeUs: number
  readonly properties: JsonObject
}): ShownEvent {
  return { uuid, event, distinct_id: distinctId, timestamp: formatTime(timeUs), properties }
}

/** The fields of a record that none of its events carries. */
export function droppedOf(source: ImportSource, value: JsonObject, config: JsonObject = {}): readonly string[] {
  const context = { nowMs: conversionTimeMs, holdLiveWindow: false, findFact: () => null }
  const outcome = source.prepare(config, context).convert({ value, table: null, ordinal: 1 })
  if (!('events' in outcome)) throw new Error(`${JSON.stringify(outcome)} is no event`)
  return outcome.dropped ?? []
}

/**
 * @param pairs `field=property` for each field that gets another name, with dots in the path of a nested field.
 * @returns a record in which each field holds its own path, and the properties that it gives.
 */
export function renamedFields(pairs: string): { readonly fields: JsonObject; readonly properties: JsonObject } {
  const fields: JsonObject = {}
  const properties: JsonObject = {}
  for (const [path, property] of pairs
    .trim()
    .split(/\s+/)
    .map(pair => pair.split('='))) {
    const steps = path!.split('.')
    const last = steps.pop()!
    let owner = fields
    for (const step of steps) {
      owner[step] ??= {}
      owner = owner[step] as JsonObject
    }
    owner[last] = path!
    properties[property!] = path!
  }
  return { fields, properties }
}
