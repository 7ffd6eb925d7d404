// Mixpanel: rows of its raw event export and of its profile export. Source: docs/wire/import.md §1.2.

import { getOwnValue, isJsonObject, type JsonObject } from '#core/json.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { deriveContentUuid, deriveImportUuid, deriveMixpanelUuid } from '#importer/records/deterministic-uuid.ts'
import { requireDistinctId, toEventIdText } from '#importer/records/distinct-ids.ts'
import { type Conversion, createSkippedOutcome, RecordReject } from '#importer/records/imported-event.ts'
import { putPersonUpdates, readEventName, readObjectField } from '#importer/records/record-fields.ts'
import { checkTimeInWindow, formatTime, type TimeWindow } from '#importer/records/source-time.ts'
import { isSelfJoin, readIdentity, readIdentityLinks, readPersonId } from './mixpanel-ids.ts'
import {
  listDroppedFields,
  listDroppedProfileFields,
  mapMixpanelProperties,
  mapProfileProperties,
} from './mixpanel-properties.ts'
import { createTimeZoneNotes, readEventTime } from './mixpanel-time.ts'

const name = 'mixpanel'

interface Settings {
  readonly window: TimeWindow
  /** IANA zone of the project, for exports whose numeric times are local times in that zone. */
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
        isMixpanelProfile(value) ? convertProfile(value, profileTimeUs, window) : convertEvent(value, settings),
      timeOf: ({ value }) =>
        isMixpanelProfile(value)
          ? requireProfileTime(profileTimeUs, window)
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
  ['$merge', '$merge_dangerously'],
])

function convertEvent(record: JsonObject, settings: Settings): Conversion {
  const sourceName = readEventName(getOwnValue(record, 'event'), 'event')
  const from = getOwnValue(record, 'properties')
  if (!isJsonObject(from)) throw new RecordReject('properties_not_object', 'properties')
  if (sourceName === '$merge' && !settings.allowsMerge)
    throw new RecordReject('merge_needs_approval', 'properties.$distinct_ids')
  const ids = readIdentity(sourceName, from)
  const time = readEventTime(from, settings.zone, settings.window)
  const { timeUs } = time
  if (isSelfJoin(ids)) return createSkippedOutcome('filtered')
  const properties = mapMixpanelProperties(sourceName, from)
  const links = readIdentityLinks(from, timeUs)
  const dropped = listDroppedFields(from, ids.kind === 'event' ? '$insert_id' : null)
  const notes = createTimeZoneNotes(from, time, settings.zone)
  if (ids.kind === 'identify') return { events: [], links: [{ ...ids, timeUs, properties }, ...links], dropped, notes }
  const { distinctId } = ids
  const event = eventNames.get(sourceName) ?? sourceName
  if (ids.kind === 'event') {
    const uuid = deriveUuid(record, from)
    return { events: [{ uuid, event, sourceName, distinctId, timeUs, properties }], links, dropped, notes }
  }
  // The uuid of an event that joins two ids depends only on these ids, so that repeated rows are one event.
  const uuid = deriveImportUuid(ids.kind, name, distinctId, ids.alias)
  const joining = { uuid, event, sourceName, distinctId, timeUs, properties: { ...properties, alias: ids.alias } }
  return { events: [joining], links, dropped, notes }
}

function deriveUuid(record: JsonObject, from: JsonObject): string {
  const insertId = toEventIdText(getOwnValue(from, '$insert_id'))
  return insertId === null ? deriveContentUuid(name, record) : deriveMixpanelUuid(insertId)
}

/** Whether a record is a row of the profile export; such a row has no field `event`. */
export function isMixpanelProfile(record: JsonObject): boolean {
  return !Object.hasOwn(record, 'event') && Object.hasOwn(record, '$distinct_id')
}

/**
 * @param exportedUs when the profiles were exported, microseconds since 1970; null refuses them.
 * @throws RecordReject
 */
function requireProfileTime(exportedUs: number | null, window: TimeWindow): number {
  const field = 'profile_timestamp'
  if (exportedUs === null) throw new RecordReject('timestamp_missing', field)
  checkTimeInWindow(exportedUs, window, field)
  return exportedUs
}

/** @param exportedUs as for `requireProfileTime`. @throws RecordReject */
function convertProfile(record: JsonObject, exportedUs: number | null, window: TimeWindow): Conversion {
  const from = getOwnValue(record, '$properties')
  if (!isJsonObject(from)) throw new RecordReject('properties_not_object', '$properties')
  const distinctId = requireDistinctId(readPersonId(getOwnValue(record, '$distinct_id')))
  const timeUs = requireProfileTime(exportedUs, window)
  const properties: JsonObject = {}
  putPersonUpdates(properties, { set: mapProfileProperties(from) })
  const uuid = deriveImportUuid('mixpanel', 'profile', distinctId, formatTime(timeUs))
  return {
    events: [{ uuid, event: '$set', sourceName: 'profile', distinctId, timeUs, isTimeFilledIn: true, properties }],
    dropped: listDroppedProfileFields(from),
  }
}
