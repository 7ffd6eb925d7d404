// Plausible: its export has only sums by day. By default each row becomes one event that is marked as a sum and has no
// person; on request, each row of the pages table becomes as many page views as it counts. These are deterministic, marked
// as synthetic, and carry the row's totals of views and visitors. Source: docs/wire/import.md §1.7.

import { getOwnValue, type JsonObject } from '#core/json.ts'
import { defineSource } from '#importer/records/define-source.ts'
import { deriveContentUuid, deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import { checkIdLength, toIdText } from '#importer/records/distinct-ids.ts'
import { ImportConfigError, type SourceRecord } from '#importer/records/import-source.ts'
import {
  type Conversion,
  createSkippedOutcome,
  type ImportedEvent,
  RecordReject,
} from '#importer/records/imported-event.ts'
import { putProperty, readEventName, readTextField } from '#importer/records/record-fields.ts'
import {
  checkTimeInWindow,
  readTimeField,
  type TimeWindow,
  usPerMs,
  wallClockToUtc,
} from '#importer/records/source-time.ts'

/** The kind of a fact that exists for each date that has rows in the pages table. */
const pagesFact = 'plausible_pages'
const pages = 'imported_pages'
const totals = 'imported_visitors'
/** The most page views of one row: all of them are in memory at once, which takes some 200 MB. */
const viewsMax = 1_000_000

interface Settings {
  /** The site's name in Plausible, which is the site's domain. */
  readonly site: string
  /** The zone of the site's days; null refuses all rows. */
  readonly zone: string | null
  /** How many pseudo-visitors the views of a day are spread over; null takes the count of visitors in each row. */
  readonly visitors: number | null
  readonly window: TimeWindow
}

export const plausible = defineSource(
  'plausible',
  'the CSV files of the export of Plausible: sums by day, or page views made up to equal them',
  (config, context) => {
    const site = config.text('site')
    const mode = config.choice('mode', ['aggregate', 'synthesize'])
    const zone = config.zone()
    const visitors = config.wholeNumber('visitors')
    const configuredTable = config.text('table')
    // Called first, since the message about a misspelt key explains more than a message about the absent right key.
    config.end()
    if (site === null)
      throw new ImportConfigError('site in the configuration of plausible must be set, such as "blog.example.com"')
    if (visitors !== null && visitors < 1)
      throw new ImportConfigError('visitors in the configuration of plausible must be at least 1')
    const settings = { site, zone, visitors, window: context }
    const resolveTable = (record: SourceRecord) => configuredTable ?? findTable(record)
    const readDate = ({ value }: SourceRecord) => toIdText(getOwnValue(value, 'date')) ?? ''
    // Only two tables count page views as such, and both count the same views. The other tables break these views down by
    // source, device and so on, so they stay sums; otherwise each view would be synthesized nine times.
    const countsViews = (record: SourceRecord, table: string) =>
      table === pages || (table === totals && context.findFact(pagesFact, readDate(record)) === null)
    return {
      convert(record) {
        const table = resolveTable(record)
        if (table === null)
          throw new RecordReject('event_missing', 'table', 'neither the file nor the row identifies its table')
        const views =
          mode === 'synthesize' && countsViews(record, table) ? synthesizeViews(table, record.value, settings) : null
        return views ?? convertToSum(table, record.value, settings)
      },
      factsOf: record =>
        mode === 'synthesize' && resolveTable(record) === pages
          ? [{ kind: pagesFact, key: readDate(record), value: 'known' }]
          : [],
      // The first page view that is made from a row also has the start of the day as its time.
      timeOf: ({ value }) => readDayStart(value, settings),
    }
  },
)

/** The start of the row's day. @throws RecordReject */
function readDayStart(row: JsonObject, { zone, window }: Settings): number {
  return readTimeField(row, 'date', { zone }, window)
}

function convertToSum(table: string, row: JsonObject, settings: Settings): Conversion {
  const timeUs = readDayStart(row, settings)
  const properties: JsonObject = {}
  for (const [column, value] of Object.entries(row)) {
    if (column === 'date') continue
    putProperty(properties, column, counts.has(column) ? (readNumber(row, column) ?? value) : value)
  }
  properties.$import_aggregate = true
  properties.$process_person_profile = false
  const event = readEventName(`plausible_${table}`, 'table')
  const distinctId = checkIdLength(`plausible:${settings.site}`)
  const uuid = deriveContentUuid('plausible', row)
  const filledIn = { isIdFilledIn: true, isTimeFilledIn: true } as const
  return { events: [{ uuid, event, sourceName: table, distinctId, timeUs, ...filledIn, properties }] }
}

/** @returns the page views that a row counts; null if the row has no count of page views. */
function synthesizeViews(table: string, row: JsonObject, settings: Settings): Conversion | null {
  const viewCount = readCount(row, 'pageviews')
  if (viewCount === null) return null
  if (viewCount > viewsMax)
    throw new RecordReject('record_too_large', 'pageviews', `a row may make at most ${viewsMax} page views`)
  const day = findLocalDay(row, settings)
  if (viewCount === 0) return createSkippedOutcome('filtered')
  const date = toIdText(row.date) ?? ''
  const [host, page] = [readTextField(row, 'hostname'), readTextField(row, 'page')]
  const visitorCount = Math.max(1, settings.visitors ?? readCount(row, 'visitors') ?? 1)
  // All events share one object with properties, since a row may count very many views.
  const properties = createViewProperties(host ?? settings.site, page)
  const events = Array.from({ length: viewCount }, (_, index): ImportedEvent => {
    const parts = [settings.site, 'synthetic', date, host ?? '', page ?? '', String(index)]
    return {
      uuid: deriveImportUuid('plausible', ...parts),
      event: '$pageview',
      sourceName: table,
      distinctId: checkIdLength(`plausible:${settings.site}:${date}:${index % visitorCount}`),
      timeUs: (day.startMs + Math.floor((index * day.lengthMs) / viewCount)) * usPerMs,
      isIdFilledIn: true,
      isTimeFilledIn: true,
      properties,
    }
  })
  checkTimeInWindow(events.at(-1)!.timeUs, settings.window, 'date')
  const kept = new Set(['date', 'hostname', 'page', 'visitors', 'pageviews'])
  return { events, dropped: Object.keys(row).filter(column => !kept.has(column)) }
}

/** The time between two local midnights: 23 or 25 hours when clocks change. */
function findLocalDay(row: JsonObject, settings: Settings): { readonly startMs: number; readonly lengthMs: number } {
  const startUs = readDayStart(row, settings)
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)$/.exec(toIdText(row.date) ?? '') ?? []
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

/** Columns that identify a table, in order of precedence. */
const marks: readonly (readonly [column: string, table: string])[] = [
  ['entry_page', 'imported_entry_pages'],
  ['exit_page', 'imported_exit_pages'],
  ['page', 'imported_pages'],
  ...['source', 'referrer', 'utm_source', 'utm_medium', 'utm_campaign', 'utm_content', 'utm_term'].map(
    column => [column, 'imported_sources'] as const,
  ),
  ...['country', 'region', 'city'].map(column => [column, 'imported_locations'] as const),
  ['device', 'imported_devices'],
  ['operating_system', 'imported_operating_systems'],
  ['browser', 'imported_browsers'],
  ['link_url', 'imported_custom_events'],
]
/** Columns with counts. Other columns with digits, such as the code of a city, contain names. */
const counts = new Set([
  ...['visitors', 'visits', 'pageviews', 'bounces', 'visit_duration', 'entrances', 'exits', 'time_on_page', 'events'],
  ...['active_visitors', 'total_scroll_depth', 'total_scroll_depth_visits', 'total_time_on_page'],
  'total_time_on_page_visits',
])

/** @returns the table's name, without the days at the end of the file name; null when it is unknown. */
function findTable({ table, value }: SourceRecord): string | null {
  const [, name] = /(imported_[a-z_]*[a-z])(?:_\d{8}_\d{8})?(?:\.csv)?$/i.exec(table ?? '') ?? []
  return name ?? findTableByColumns(value)
}

/** @returns null also for a row whose identifying cell is empty, since CSV readers omit empty cells. */
function findTableByColumns(row: JsonObject): string | null {
  for (const [column, table] of marks) if (Object.hasOwn(row, column)) return table
  const isOfDay = Object.hasOwn(row, 'visitors') && Object.hasOwn(row, 'pageviews') && Object.hasOwn(row, 'bounces')
  return isOfDay ? 'imported_visitors' : null
}

/** @returns the number in a cell, such as a mean of seconds; null if it is not a number. */
function readNumber(row: JsonObject, column: string): number | null {
  const value = getOwnValue(row, column)
  const number = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && number <= Number.MAX_SAFE_INTEGER ? number : null
}

/** @returns an integer from 0; null for anything else. */
function readCount(row: JsonObject, column: string): number | null {
  const value = getOwnValue(row, column)
  const number = typeof value === 'string' && /^\d+$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : null
}
