// Reads the stored events from which persons and groups result, for undoing an import, and for repairing and splitting
// persons. Source: docs/decisions/0081-a-person-is-a-fold.md.

import type { GroupIdentity } from '#core/events/group-identity.ts'
import type { HistoricEvent } from '#core/processing/history/historic-event.ts'

/**
 * The most rows, and characters in them, that one call returns; above this, the call throws a `QueryTooLargeError`. In
 * `readHistory`, the maximum applies separately to events that write or link something and to all other events.
 */
export const foundRowsMax = 100_000
export const foundCharsMax = 64 * 1024 * 1024

/** Two distinct ids that an event links. */
export interface HistoricLink {
  readonly distinctId: string
  readonly linkedId: string
}

export type HistorySubjects =
  | { readonly distinctIds: readonly string[]; readonly groups?: undefined }
  | { readonly groups: readonly GroupIdentity[]; readonly distinctIds?: undefined }

/**
 * Reads visible rows; each copy of an event counts as a separate row.
 * @throws PortError from every method, as in `EventQueries`; `QueryTooLargeError` where the same method may succeed for
 * fewer ids or groups.
 */
export interface EventHistory {
  /** The distinct ids of the rows of an explicit or implicit job, in byte order: the page after `after`. */
  listJobIds(projectId: number, importJobId: number, after: string | null, limit: number): Promise<readonly string[]>
  /** The groups that a job's rows describe, in byte order of type name and key: the page after `after`. */
  listJobGroups(
    projectId: number,
    importJobId: number,
    after: GroupIdentity | null,
    limit: number,
  ): Promise<readonly GroupIdentity[]>
  /** Every link in which at least one of the two ids is one of these, each pair once. */
  findLinks(projectId: number, distinctIds: readonly string[]): Promise<readonly HistoricLink[]>
  /**
   * The events with one of these distinct ids, or those that describe one of these groups. Of the events with one distinct
   * id that write nothing, this returns only those that may have created the person or lowered its time of creation.
   */
  readHistory(projectId: number, subjects: HistorySubjects): Promise<readonly HistoricEvent[]>
}
