// What the conversion of all of Heap's rows needs.

import type { JsonObject } from '#core/json.ts'
import { readRecordTime } from '#importer/records/record-time.ts'
import type { TimeWindow } from '#importer/records/time-window.ts'

/** All of Heap's times are UTC, with or without the suffix `UTC`. Source: docs/wire/import.md §1.4. */
export const heapTime = { zone: 'UTC' } as const

/** @throws RecordReject */
export function readHeapTime(row: JsonObject, field: string, window: TimeWindow): number {
  return readRecordTime(row[field], heapTime, window, field)
}

export interface HeapLookups {
  readonly window: TimeWindow
  /** The identity of a user; null for one who never identified. */
  identityOf(userId: string | null): string | null
}
