// What the conversion of Heap's rows needs from elsewhere.

import type { TimeWindow } from '#importer/records/time-window.ts'

/** All of Heap's times are UTC, with or without the suffix `UTC`. Source: docs/wire/import.md §1.4. */
export const heapTime = { zone: 'UTC' } as const

export interface HeapLookups {
  readonly window: TimeWindow
  /** The identity of a user; null for one who never identified. */
  identityOf(userId: string | null): string | null
}
