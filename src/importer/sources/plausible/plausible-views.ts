// Synthesizes as many page views as a row of Plausible counts: marked as synthetic, deterministic, and with the row's totals
// of views and visitors. Source: docs/wire/import.md §1.7.

import type { JsonObject } from '#core/json.ts'
import { rootUuid } from '#importer/records/deterministic-uuid.ts'
import { checkIdLength, idText } from '#importer/records/distinct-ids.ts'
import { type Conversion, type ImportedEvent, RecordReject, skipRecord } from '#importer/records/imported-event.ts'
import { readTextField } from '#importer/records/record-fields.ts'
import { usPerMs, wallClockToUtc } from '#importer/records/source-time.ts'
import { checkTime } from '#importer/records/time-window.ts'
import { type PlausibleSettings, readDayStart } from './plausible-sums.ts'
import { readCount } from './plausible-tables.ts'

/** All views of a row are in memory at once: some 200 MB. */
const viewsMax = 1_000_000

/** @returns null for a row without a number of page views. */
export function synthesizeViews(table: string, row: JsonObject, settings: PlausibleSettings): Conversion | null {
  const viewCount = readCount(row, 'pageviews')
  if (viewCount === null) return null
  if (viewCount > viewsMax)
    throw new RecordReject('record_too_large', 'pageviews', `a row may make at most ${viewsMax} page views`)
  const day = findLocalDay(row, settings)
  if (viewCount === 0) return skipRecord('filtered')
  const date = idText(row.date) ?? ''
  const [host, page] = [readTextField(row, 'hostname'), readTextField(row, 'page')]
  const visitorCount = Math.max(1, settings.visitors ?? readCount(row, 'visitors') ?? 1)
  // All events share one object, since a row may count very many.
  const properties = createViewProperties(host ?? settings.site, page)
  const events = Array.from({ length: viewCount }, (_, index): ImportedEvent => {
    const parts = [settings.site, 'synthetic', date, host ?? '', page ?? '', String(index)]
    return {
      uuid: rootUuid('plausible', ...parts),
      event: '$pageview',
      sourceName: table,
      distinctId: checkIdLength(`plausible:${settings.site}:${date}:${index % visitorCount}`),
      timeUs: (day.startMs + Math.floor((index * day.lengthMs) / viewCount)) * usPerMs,
      isIdFilledIn: true,
      isTimeFilledIn: true,
      properties,
    }
  })
  checkTime(events.at(-1)!.timeUs, settings.window, 'date')
  const kept = new Set(['date', 'hostname', 'page', 'visitors', 'pageviews'])
  return { events, dropped: Object.keys(row).filter(column => !kept.has(column)) }
}

/** The time between two local midnights: 23 or 25 hours when clocks change. */
function findLocalDay(
  row: JsonObject,
  settings: PlausibleSettings,
): { readonly startMs: number; readonly lengthMs: number } {
  const startUs = readDayStart(row, settings)
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(idText(row.date) ?? '') ?? []
  const { zone } = settings
  if (zone === null || year === undefined) throw new RecordReject('timestamp_invalid', 'date')
  const endUs = wallClockToUtc(Date.UTC(Number(year), Number(month) - 1, Number(day) + 1) * usPerMs, zone)
  return { startMs: startUs / usPerMs, lengthMs: (endUs - startUs) / usPerMs }
}

function createViewProperties(host: string, page: string | null): JsonObject {
  return {
    ...(page !== null && { $current_url: `https://${host}${page}`, $pathname: page }),
    $host: host,
    $process_person_profile: false,
    $import_synthetic: true,
  }
}
