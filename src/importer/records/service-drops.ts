// Records whose events the service would refuse, or take and then drop, for what they are: asked of its own rules beforehand,
// so that a rehearsal counts them and nothing is sent in vain. Source: docs/wire/import.md §2.6; docs/wire/ingestion.md 6.

import { dropOfImport } from '#core/capture/cookieless-event.ts'
import { storedName } from '#core/capture/normalize-event.ts'
import { findDrop } from '#core/events/event-drops.ts'
import { groupKeyLengthMax } from '#core/events/group-identity.ts'
import type { JsonObject } from '#core/json.ts'
import { isDeeperThan } from '#core/json-depth.ts'
import { noIngestionSettings } from '#core/project.ts'
import { nestingDepthMax } from '#wire/bytes/json-walk.ts'
import { linkEventWithoutUuid } from './generated-events.ts'
import { type ConvertedRecord, type ImportedEvent, RecordReject, type ServiceDrop } from './imported-event.ts'

/** @throws RecordReject for a record with an event that would be refused or dropped. */
export function checkDrops({ events, links = [], groups = [], person }: ConvertedRecord): void {
  for (const event of events) checkEvent(event)
  for (const link of links) if (Object.keys(link.properties).length > 0) checkEvent(linkEventWithoutUuid(link))
  for (const group of groups) if (group.properties !== null) checkNesting(group.properties, '$group_set')
  if (person !== undefined) checkNesting(person.properties, '$set')
}

/**
 * The record for a project that takes every event without a person: it links nobody.
 * @throws RecordReject for a record that joins persons, or that does nothing but link.
 */
export function withoutPersons(record: ConvertedRecord): ConvertedRecord {
  const { events, links = [] } = record
  for (const event of events) checkEvent(event, true)
  if (events.length === 0 && links.length > 0)
    throw rejectOf('invalid_event_when_process_person_profile_is_false', 'the project takes no persons')
  return links.length === 0 ? record : { ...record, links: [] }
}

/** The record without what it tells of groups whose key is too long: its own events are stored all the same. */
export function withoutLongGroups(record: ConvertedRecord): ConvertedRecord {
  const { groups = [], notes = [] } = record
  if (groups.length === 0) return record
  const kept = groups.filter(({ key }) => key.length <= groupKeyLengthMax)
  if (kept.length === groups.length) return record
  const left = Array.from({ length: groups.length - kept.length }, () => 'group_key_too_long')
  return { ...record, groups: kept, notes: [...notes, ...left] }
}

/**
 * The service refuses a request with a value that nests deeper.
 * @param within the property of an event in which the properties are sent; null for those of the event itself.
 * @throws RecordReject
 */
function checkNesting(properties: JsonObject, within: '$set' | '$group_set' | null): void {
  if (!isDeeperThan(properties, within === null ? nestingDepthMax : nestingDepthMax - 1)) return
  const detail = `it nests more than the ${nestingDepthMax} lists and objects that the service takes`
  throw rejectOf('invalid_json', detail, within ?? 'properties')
}

/** @throws RecordReject */
function checkEvent(checked: Omit<ImportedEvent, 'uuid'>, isProjectPersonless = false): void {
  const { event, distinctId, properties } = checked
  checkNesting(properties, null)
  // The only event that is left out before it has a person or a time.
  if (event === '$performance_event') throw rejectOf('dropped_performance_event')
  const cookielessMode = properties.$cookieless_mode
  if (cookielessMode !== undefined && typeof cookielessMode !== 'boolean') throw rejectOf('invalid_cookieless_mode')
  const cookielessDrop = cookielessMode === true ? dropOfImport(distinctId) : null
  if (cookielessDrop !== null) throw rejectOf(cookielessDrop)
  // Its uuid would only be told in a warning.
  const captured = { uuid: '', distinctId, name: storedName(event, true), historicalMigration: true }
  // Its age drops no event of an import.
  const ageless = { ...captured, receivedAtMs: 0, timestampMs: 0 }
  const isPersonless = isProjectPersonless || properties.$process_person_profile === false
  const drop = findDrop(ageless, properties, { ingestion: noIngestionSettings }, isPersonless)
  if (drop !== null) throw rejectOf(drop.reason, isProjectPersonless ? 'the project takes no persons' : undefined)
}

function rejectOf(reason: ServiceDrop, detail?: string, field = drops[reason]?.field ?? null): RecordReject {
  return new RecordReject(`server_refused:${reason}`, field, detail)
}

const drops: Readonly<Partial<Record<ServiceDrop, { readonly field: string; readonly fix: string }>>> = {
  heatmap: { field: 'event', fix: 'Heatmaps cannot be imported; nothing has to be done.' },
  client_ingestion_warning: {
    field: 'event',
    fix: 'Warnings of clients cannot be imported; nothing has to be done.',
  },
  dropped_performance_event: { field: 'event', fix: 'Events of this name are not kept; nothing has to be done.' },
  invalid_anon_distinct_id: { field: '$anon_distinct_id', fix: 'The $anon_distinct_id of a link has to be a text.' },
  invalid_alias: { field: 'alias', fix: 'The alias of a link has to be a text.' },
  group_key_too_long: {
    field: '$group_key',
    fix: `Shorten the key of the group to ${groupKeyLengthMax} characters, the same way everywhere.`,
  },
  cookieless_timestamp_out_of_range: {
    field: 'distinct_id',
    fix: "The id of all visitors of the cookieless mode is nobody's: give the event an id, or leave the record out.",
  },
  invalid_cookieless_mode: { field: '$cookieless_mode', fix: 'Leave out $cookieless_mode, which is true or false.' },
  invalid_json: {
    field: 'properties',
    fix: `Leave out what nests deeper than ${nestingDepthMax} lists and objects, or put it there as a text.`,
  },
  invalid_event_when_process_person_profile_is_false: {
    field: '$process_person_profile',
    fix: 'An event that joins persons needs them: leave out $process_person_profile, or the record.',
  },
}

/** @returns null for a reason that only sending finds. */
export function dropFixOf(reason: `server_refused:${string}`): string | null {
  return drops[reason.slice('server_refused:'.length) as ServiceDrop]?.fix ?? null
}
