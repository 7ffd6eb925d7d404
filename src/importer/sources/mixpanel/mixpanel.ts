// Mixpanel: rows of its raw event export and of its profile export. Source: docs/wire/import.md §1.2.

import { isJsonObject, type JsonObject, ownValue } from '#core/json.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { contentUuid, mixpanelUuid, rootUuid } from '#importer/records/deterministic-uuid.ts'
import { eventIdText } from '#importer/records/distinct-ids.ts'
import { type Conversion, type ImportedEvent, RecordReject, skipRecord } from '#importer/records/imported-event.ts'
import { readEventName, readObjectField } from '#importer/records/record-fields.ts'
import type { TimeWindow } from '#importer/records/source-time.ts'
import { joinsItself, type Pair, readIdentity, readLinks } from './mixpanel-ids.ts'
import { checkProfileTime, convertProfile, isProfile } from './mixpanel-profile.ts'
import { listDroppedFields, mapProperties } from './mixpanel-properties.ts'
import { createZoneNotes, type EventTime, readEventTime } from './mixpanel-time.ts'

const name = 'mixpanel'

interface Settings {
  readonly window: TimeWindow
  /** IANA zone of the project, for exports whose numeric times are its wall clock. */
  readonly zone: string | null
  readonly allowsMerge: boolean
}

export const mixpanel = defineSource(
  name,
  'rows of the raw event export, and of the profile export',
  (config, window) => {
    const settings = { window, zone: config.zone(), allowsMerge: config.flag('allow_dangerous_merge') }
    const profileTimeUs = config.time('profile_timestamp')
    return {
      convert: ({ value }) =>
        isProfile(value) ? convertProfile(value, profileTimeUs, window) : convertEvent(value, settings),
      timeOf: ({ value }) =>
        isProfile(value)
          ? checkProfileTime(profileTimeUs, window)
          : readEventTime(readObjectField(value, 'properties'), settings.zone, window).timeUs,
    }
  },
)

const eventNames: ReadonlyMap<string, string> = new Map([
  ['$mp_web_page_view', '$pageview'],
  ['$mp_page_leave', '$pageleave'],
  ['$mp_click', '$autocapture'],
  ['$mp_submit', '$autocapture'],
  ['$mp_input_change', '$autocapture'],
  ['$mp_rage_click', '$rageclick'],
  ['$mp_dead_click', '$dead_click'],
])

function convertEvent(record: JsonObject, settings: Settings): Conversion {
  const sourceName = readEventName(ownValue(record, 'event'), 'event')
  const from = ownValue(record, 'properties')
  if (!isJsonObject(from)) throw new RecordReject('properties_not_object', 'properties')
  if (sourceName === '$merge' && !settings.allowsMerge)
    throw new RecordReject('merge_needs_approval', 'properties.$distinct_ids')
  const ids = readIdentity(sourceName, from)
  const time = readEventTime(from, settings.zone, settings.window)
  if (joinsItself(ids)) return skipRecord('filtered')
  const properties = mapProperties(sourceName, from)
  const links = readLinks(from, time.timeUs)
  const rest = {
    dropped: listDroppedFields(from, ids.kind === 'event' ? '$insert_id' : null),
    notes: createZoneNotes(from, time, settings.zone),
  }
  switch (ids.kind) {
    case 'identify':
      return { ...rest, events: [], links: [{ ...ids, timeUs: time.timeUs, properties }, ...links] }
    case 'alias':
      return { ...rest, events: [createMergeEvent('$create_alias', 'alias', ids, time, properties)], links }
    case 'merge':
      return { ...rest, events: [createMergeEvent('$merge_dangerously', 'merge', ids, time, properties)], links }
    case 'event':
      return {
        ...rest,
        events: [
          {
            uuid: deriveUuid(record, from),
            event: eventNames.get(sourceName) ?? sourceName,
            sourceName,
            distinctId: ids.distinctId,
            timeUs: time.timeUs,
            properties,
          },
        ],
        links,
      }
  }
}

/** An event that joins two ids. Its uuid depends only on them, so that repeated rows are one event. */
function createMergeEvent(
  event: string,
  kind: string,
  { distinctId, alias }: Pair,
  { timeUs }: EventTime,
  properties: JsonObject,
): ImportedEvent {
  return {
    uuid: rootUuid(kind, name, distinctId, alias),
    event,
    sourceName: event === '$merge_dangerously' ? '$merge' : event,
    distinctId,
    timeUs,
    properties: { ...properties, alias },
  }
}

function deriveUuid(record: JsonObject, from: JsonObject): string {
  const insertId = eventIdText(ownValue(from, '$insert_id'))
  return insertId === null ? contentUuid(name, record) : mixpanelUuid(insertId)
}
