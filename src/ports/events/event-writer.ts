// What the worker writes to the event store, and what it looks up before it writes. The rows are read through
// `event-queries.ts`, `reject-store.ts`, `recording-store.ts` and `ChargedUsage`.

import type {
  EventIdentity,
  PersonIdOverride,
  RejectedEvent,
  StoredEvent,
  StoredRecording,
} from '#core/events/stored-event.ts'
import type { DeduplicatedCall, StoredFlagCall } from '#core/processing/deduplicate-flag-calls.ts'
import type { RefusedRow } from '#core/processing/refused-rows.ts'

/**
 * @throws PortError from every method: `unavailable`, `timeout`, `full` if the store's disk is full, `corrupt` if
 *   stored data is damaged. Repeat the call.
 */
export interface EventWriter {
  /**
   * Writes rows; resolves when they are durable and every query sees them. Repeating the same rows replaces them.
   *
   * Between two rows of one identity, a live row wins over an imported row; between two rows of the same kind, the row
   * written later wins. Between two overrides of one distinct id, the higher version wins, and at equal versions the later
   * override. Between two deduplicated calls of one identity, the call charged first wins.
   *
   * A row whose content cannot be stored comes back in `refused` (its index in `events`, `pendingEvents` or
   * `recordings`); all others are stored. After an error, some, all or none of the rows are stored.
   */
  insert(rows: EventRows): Promise<{ refused: readonly RefusedRow[] }>
  /**
   * For each identity, `chargedAtMs` of the live row that queries see now, ignoring imported copies; null if there is none.
   * Takes any number of identities. Interactive queries do not delay this, however many are waiting.
   */
  findChargedTimes(identities: readonly EventIdentity[]): Promise<readonly (number | null)[]>
  /**
   * The stored live `$feature_flag_called` events with the distinct ids and on the UTC days of these calls: each kind
   * (flag, answer, groups, experiment) once, with the uuids of those `calls` that are among its copies. Takes any
   * number of calls.
   */
  findFlagCalls(calls: readonly EventIdentity[]): Promise<readonly StoredFlagCall[]>
  /**
   * The override that queries currently use, for each distinct id that has one. Takes any number of ids; the answers are in
   * any order.
   */
  findOverrides(
    ids: readonly { readonly projectId: number; readonly distinctId: string }[],
  ): Promise<readonly PersonIdOverride[]>
  /** How many distinct ids a job's pending rows with persons (`personMode` is `full`) have, within a few percent. */
  countPendingDistinctIds(importJobId: number): Promise<number>
  /**
   * For each pending row of a job that has a person: adds to `personPropertiesJson` the person's known properties that the
   * row lacks. Existing properties of a row stay unchanged. Repeat it after a crash. Returns early when the signal aborts.
   * It begins by removing what an earlier call left over. A call for the same job that is still running in another worker
   * then adds nothing more, and does not disturb this call.
   * @param share selects some of the job's distinct ids: there are `count` shares of about the same size.
   * @param knownOf the properties of some distinct ids' persons as JSON.stringify writes them; ids without a person are
   * left
   * out. If the properties exceed `knownBytesMax` bytes, only the shortest that fit are added.
   */
  addKnownProperties(
    importJobId: number,
    share: IdShare,
    knownOf: GetKnownProperties,
    signal: AbortSignal,
  ): Promise<void>
  /** Makes a job's pending rows visible to queries. Repeat it after a crash. Job ids start at 2, as in `discardJob`. */
  publishJob(importJobId: number): Promise<void>
  /**
   * Deletes the rows of a job that shares its partition with other jobs (`importPartition` 1), and resolves when no row
   * remains. Repeat it after a crash.
   */
  deleteSharedJobRows(importJobId: number): Promise<void>
  /** Drops a job's rows, pending and published. Repeat it after a crash. */
  discardJob(importJobId: number): Promise<void>
}

export interface IdShare {
  /** From 0 on. */
  readonly index: number
  readonly count: number
}

export type GetKnownProperties = (distinctIds: readonly string[]) => Promise<ReadonlyMap<string, string>>

/** The most bytes of known properties per row: a store that rewrites thousands of rows at once holds them several times. */
export const knownBytesMax = 2 * 1024

export interface EventRows {
  readonly events: readonly StoredEvent[]
  /** Rows of import jobs that are not published yet; queries do not return them until then. */
  readonly pendingEvents: readonly StoredEvent[]
  readonly overrides: readonly PersonIdOverride[]
  readonly recordings: readonly StoredRecording[]
  readonly rejected: readonly RejectedEvent[]
  /** Flag calls of projects that deduplicate them: they are charged, but not stored as events. */
  readonly deduplicated?: readonly DeduplicatedCall[]
  /**
   * By project: how often its persons had been erased when the rows were created; 0 for absent projects. The erasure of a
   * person removes rows whose count is from before this erasure; rows with a later count stay.
   */
  readonly erasures?: ReadonlyMap<number, number>
  /** True for rows that were stored before and may have been lost: they replace no event that still exists. */
  readonly areRestored?: boolean
}

export const noEventRows: EventRows = { events: [], pendingEvents: [], overrides: [], recordings: [], rejected: [] }
