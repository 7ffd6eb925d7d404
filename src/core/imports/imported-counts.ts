// What the event store holds of an import job.

export const idBucketCount = 256

export interface ImportedCounts {
  /** Stored rows; a row that was sent twice counts once. */
  readonly rows: number
  /** By UTC day (`YYYY-MM-DD`) and event name, in this order. */
  readonly counts: readonly { readonly day: string; readonly event: string; readonly uuids: number }[]
  /** Rows by the CRC-32 of their distinct id, modulo 256. */
  readonly idBuckets: readonly number[]
}
