// Counts of an import job's rows in the event store.

export const idBucketCount = 256

export interface ImportedRowCounts {
  /** Stored rows; a row that was sent twice counts once. */
  readonly rows: number
  /** The number of rows for each value of the CRC-32 of their distinct id, modulo 256. */
  readonly idBuckets: readonly number[]
}

/** A UTC day (`YYYY-MM-DD`) and the name of events stored for it. */
export interface DayAndEvent {
  readonly day: string
  readonly event: string
}

export interface ImportedCount extends DayAndEvent {
  /** Stored rows of this day and name; a row that was sent twice counts once. */
  readonly uuids: number
}
