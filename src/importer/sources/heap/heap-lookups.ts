// What the rows of Heap's tables need beside themselves.

import type { TimeWindow } from '#importer/records/time-window.ts'

/** Heap writes all its times in UTC, with the word or without. Source: docs/wire/import.md §1.4. */
export const heapTime = { zone: 'UTC' } as const

export interface HeapLookups {
  /** Which times a row may have. */
  readonly window: TimeWindow
  /** The name under which a user identified; null for one who never did. */
  identityOf(userId: string | null): string | null
}
