// The tables of Plausible's export: which one a row is from, and which of its columns count something.
// Source: docs/wire/import.md §1.7.

import { type JsonObject, ownValue } from '#core/json.ts'
import type { SourceRecord } from '#importer/records/import-source.ts'

/** The columns that only one table has; the first table that has its column is the row's. */
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
  'visitors',
  'visits',
  'pageviews',
  'bounces',
  'visit_duration',
  'entrances',
  'exits',
  'time_on_page',
  'events',
  'active_visitors',
  'total_scroll_depth',
  'total_scroll_depth_visits',
  'total_time_on_page',
  'total_time_on_page_visits',
])

/** @returns the table's name, without the days that the file's name ends with; null when nothing tells it. */
export function plausibleTable({ table, value }: SourceRecord): string | null {
  const [, name] = /(imported_[a-z_]*[a-z])(?:_\d{8}_\d{8})?(?:\.csv)?$/i.exec(table ?? '') ?? []
  return name ?? tableByColumns(value)
}

/** Readers of CSV leave empty cells out, so a row may lack the one column that would tell. */
function tableByColumns(row: JsonObject): string | null {
  for (const [column, table] of marks) if (Object.hasOwn(row, column)) return table
  const isOfDay = Object.hasOwn(row, 'visitors') && Object.hasOwn(row, 'pageviews') && Object.hasOwn(row, 'bounces')
  return isOfDay ? 'imported_visitors' : null
}

/** Whether the column is a number; others that look like one, such as the code of a city, are names. */
export function isPlausibleCount(column: string): boolean {
  return counts.has(column)
}

/** @returns the number in a cell, such as a mean of seconds; null for what is none. */
export function plausibleNumber(row: JsonObject, column: string): number | null {
  const value = ownValue(row, column)
  const number = typeof value === 'string' && /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && number <= Number.MAX_SAFE_INTEGER ? number : null
}

/** @returns a whole number from 0; null for what is none. */
export function plausibleCount(row: JsonObject, column: string): number | null {
  const value = ownValue(row, column)
  const number = typeof value === 'string' && /^\d+$/.test(value.trim()) ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : null
}
