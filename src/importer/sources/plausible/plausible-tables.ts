// The tables of Plausible's export: finds the table of a row, and its numeric columns.
// Source: docs/wire/import.md §1.7.

import { type JsonObject, ownValue } from '#core/json.ts'
import type { SourceRecord } from '#importer/records/import-source.ts'

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
const counts = new Set([
  ...['visitors', 'visits', 'pageviews', 'bounces', 'visit_duration', 'entrances', 'exits', 'time_on_page', 'events'],
  ...['active_visitors', 'total_scroll_depth', 'total_scroll_depth_visits', 'total_time_on_page'],
  'total_time_on_page_visits',
])

/** @returns the table's name, without the days at the end of the file name; null when it is unknown. */
export function findPlausibleTable({ table, value }: SourceRecord): string | null {
  const [, name] = /(imported_[a-z_]*[a-z])(?:_\d{8}_\d{8})?(?:\.csv)?$/i.exec(table ?? '') ?? []
  return name ?? findTableByColumns(value)
}

/** @returns null also for a row whose identifying cell is empty, since CSV readers omit empty cells. */
function findTableByColumns(row: JsonObject): string | null {
  for (const [column, table] of marks) if (Object.hasOwn(row, column)) return table
  const isOfDay = Object.hasOwn(row, 'visitors') && Object.hasOwn(row, 'pageviews') && Object.hasOwn(row, 'bounces')
  return isOfDay ? 'imported_visitors' : null
}

/** Whether the column is a count. Other columns with digits, such as the code of a city, hold names. */
export function isCountColumn(column: string): boolean {
  return counts.has(column)
}

/** @returns the number in a cell, such as a mean of seconds; null if it is no number. */
export function readNumber(row: JsonObject, column: string): number | null {
  const value = ownValue(row, column)
  const number = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && number <= Number.MAX_SAFE_INTEGER ? number : null
}

/** @returns an integer from 0; null for anything else. */
export function readCount(row: JsonObject, column: string): number | null {
  const value = ownValue(row, column)
  const number = typeof value === 'string' && /^\d+$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : null
}
