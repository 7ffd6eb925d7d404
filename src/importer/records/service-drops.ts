// Records whose events the service would take and then drop for what they are: asked of its own rules beforehand, so that
// a rehearsal counts them and nothing is sent in vain. Source: docs/wire/import.md §2.6; docs/wire/ingestion.md 6.

import { storedName } from '#core/capture/normalize-event.ts'
import { findDrop } from '#core/events/event-drops.ts'
import { groupKeyLengthMax } from '#core/events/group-identity.ts'
import { noIngestionSettings } from '#core/project.ts'
import { linkEventWithoutUuid } from './generated-events.ts'
import { type ConvertedRecord, type ImportedEvent, RecordReject, type ServiceDrop } from './imported-event.ts'

/** @throws RecordReject for a record with an event that would be dropped. */
export function checkDrops({ events, links = [] }: ConvertedRecord): void {
  for (const event of events) checkEvent(event)
  for (const link of links) if (Object.keys(link.properties).length > 0) checkEvent(linkEventWithoutUuid(link))
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

/** @throws RecordReject */
function checkEvent(checked: Omit<ImportedEvent, 'uuid'>, isProjectPersonless = false): void {
  const { event, distinctId, properties } = checked
  // The only event that is left out before it has a person or a time.
  if (event === '$performance_event') throw rejectOf('dropped_performance_event')
  // Its uuid would only be told in a warning.
  const captured = { uuid: '', distinctId, name: storedName(event, true), historicalMigration: true }
  // Its age drops no event of an import.
  const ageless = { ...captured, receivedAtMs: 0, timestampMs: 0 }
  const isPersonless = isProjectPersonless || properties.$process_person_profile === false
  const drop = findDrop(ageless, properties, { ingestion: noIngestionSettings }, isPersonless)
  if (drop !== null) throw rejectOf(drop.reason, isProjectPersonless ? 'the project takes no persons' : undefined)
}

function rejectOf(reason: ServiceDrop, detail?: string): RecordReject {
  return new RecordReject(`server_refused:${reason}`, drops[reason]?.field ?? null, detail)
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
  cookieless_not_supported: {
    field: '$cookieless_mode',
    fix: 'Events of the cookieless mode have no person of their own, so they cannot be imported.',
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
