// Rejects records whose events the service would refuse or drop because of their content. Applies the service's own rules in
// advance, so that a rehearsal counts such records and none is sent. Source: docs/wire/import.md §2.6; docs/wire/ingestion.md 6.

import { findImportDropReason } from '#core/capture/cookieless-event.ts'
import { toStoredName } from '#core/capture/normalize-event.ts'
import { findEventDropReason } from '#core/events/event-drops.ts'
import { groupKeyLengthMax } from '#core/events/group-identity.ts'
import { isDeeperThan, type JsonObject } from '#core/json.ts'
import { noIngestionSettings } from '#core/project.ts'
import { nestingDepthMax } from '#wire/bytes/json-walk.ts'
import { createLinkEventWithoutUuid } from './generated-events.ts'
import { type ConvertedRecord, type ImportedEvent, RecordReject, type ServiceDrop } from './imported-event.ts'

/** @throws RecordReject when the service would refuse or drop an event of the record. */
export function checkServiceAcceptsRecord({ events, links = [], groups = [], person }: ConvertedRecord): void {
  for (const event of events) checkEvent(event)
  for (const link of links) if (Object.keys(link.properties).length > 0) checkEvent(createLinkEventWithoutUuid(link))
  for (const group of groups) if (group.properties !== null) checkNesting(group.properties, '$group_set')
  if (person !== undefined) checkNesting(person.properties, '$set')
}

/**
 * Removes the links of a record, for a project that stores events without persons.
 * @throws RecordReject for a record that joins persons, or that consists only of links.
 */
export function removeIdentityLinks(record: ConvertedRecord): ConvertedRecord {
  const { events, links = [] } = record
  for (const event of events) checkEvent(event, true)
  if (events.length === 0 && links.length > 0)
    throw toReject('invalid_event_when_process_person_profile_is_false', 'the project takes no persons')
  return links.length === 0 ? record : { ...record, links: [] }
}

/** Removes those groups of a record that have too long a key. The record's own events are stored regardless. */
export function removeLongGroups(record: ConvertedRecord): ConvertedRecord {
  const { groups = [], notes = [] } = record
  if (groups.length === 0) return record
  const kept = groups.filter(({ key }) => key.length <= groupKeyLengthMax)
  if (kept.length === groups.length) return record
  const dropNotes = Array.from({ length: groups.length - kept.length }, () => 'group_key_too_long')
  return { ...record, groups: kept, notes: [...notes, ...dropNotes] }
}

/**
 * @param container the event property that contains the properties; null for the properties of the event itself.
 * @throws RecordReject for nesting so deep that the service would refuse the whole request.
 */
function checkNesting(properties: JsonObject, container: '$set' | '$group_set' | null): void {
  if (!isDeeperThan(properties, container === null ? nestingDepthMax : nestingDepthMax - 1)) return
  const detail = `it nests more than the ${nestingDepthMax} lists and objects that the service takes`
  throw toReject('invalid_json', detail, container ?? 'properties')
}

/** @throws RecordReject */
function checkEvent(checked: Omit<ImportedEvent, 'uuid'>, isProjectPersonless = false): void {
  const { event, distinctId, properties } = checked
  checkNesting(properties, null)
  // `findEventDropReason` does not cover this event: the service drops it before it looks at persons and times.
  if (event === '$performance_event') throw toReject('dropped_performance_event')
  const cookielessMode = properties.$cookieless_mode
  if (cookielessMode !== undefined && typeof cookielessMode !== 'boolean') throw toReject('invalid_cookieless_mode')
  const cookielessDrop = cookielessMode === true ? findImportDropReason(distinctId) : null
  if (cookielessDrop !== null) throw toReject(cookielessDrop)
  // The uuid can be left empty, since it only appears in warnings.
  const captured = { uuid: '', distinctId, name: toStoredName(event, true), historicalMigration: true }
  // Both times are 0, since no imported event is dropped because of its age.
  const ageless = { ...captured, receivedAtMs: 0, timestampMs: 0 }
  const isPersonless = isProjectPersonless || properties.$process_person_profile === false
  const drop = findEventDropReason(ageless, properties, { ingestion: noIngestionSettings }, isPersonless)
  if (drop !== null) throw toReject(drop.reason, isProjectPersonless ? 'the project takes no persons' : undefined)
}

function toReject(reason: ServiceDrop, detail?: string, field = drops[reason]?.field ?? null): RecordReject {
  return new RecordReject(`server_refused:${reason}`, field, detail)
}

const drops: Readonly<Partial<Record<ServiceDrop, { readonly field: string; readonly fix: string }>>> = {
  heatmap: { field: 'event', fix: 'Heatmaps cannot be imported; no action is needed.' },
  client_ingestion_warning: {
    field: 'event',
    fix: 'Warnings of clients cannot be imported; no action is needed.',
  },
  dropped_performance_event: { field: 'event', fix: 'Events of this name are not kept; no action is needed.' },
  invalid_anon_distinct_id: { field: '$anon_distinct_id', fix: 'The $anon_distinct_id of a link must be text.' },
  invalid_alias: { field: 'alias', fix: 'The alias of a link must be text.' },
  group_key_too_long: {
    field: '$group_key',
    fix: `Shorten the key of the group to ${groupKeyLengthMax} characters, the same way everywhere.`,
  },
  cookieless_timestamp_out_of_range: {
    field: 'distinct_id',
    fix: 'All visitors in cookieless mode share this id: give the event its own id, or leave the record out.',
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

/** @returns how the user can avoid the drop; null for a reason that is only known when sending. */
export function findServiceDropFix(reason: `server_refused:${string}`): string | null {
  return drops[reason.slice('server_refused:'.length) as ServiceDrop]?.fix ?? null
}
