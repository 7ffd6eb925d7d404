// The stored events that made persons and groups what they are, for undoing an import, and for repairing and splitting
// persons. Source: docs/decisions/0081-a-person-is-a-fold.md.

import type { GroupIdentity } from '#core/events/group-identity.ts'
import type { HistoricEvent } from '#core/processing/history/historic-event.ts'

/**
 * The maximum of rows, and of characters in them, that one call finds; above it, the call throws a `QueryTooLargeError`. For
 * `readHistory`, it holds for the events that write or link something, and for the others.
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
 * Reads visible rows, each copy of an event as one.
 * @throws PortError from every method, as in `EventQueries`; `QueryTooLargeError` where the same method may succeed for
 *   fewer ids or groups.
 */
export interface EventHistory {
  /** The distinct ids of a job's rows, explicit or implicit, in byte order: a page after `after`. */
  listJobIds(projectId: number, importJobId: number, after: string | null, limit: number): Promise<readonly string[]>
  /** The groups that a job's rows describe, in byte order of type name and key: a page after `after`. */
  listJobGroups(
    projectId: number,
    importJobId: number,
    after: GroupIdentity | null,
    limit: number,
  ): Promise<readonly GroupIdentity[]>
  /** Every link with one of these ids on either side, each pair once. */
  findLinks(projectId: number, distinctIds: readonly string[]): Promise<readonly HistoricLink[]>
  /**
   * The events with one of these distinct ids, or those that describe one of these groups. Of the events with one distinct
   * id that write nothing, only those are returned that may have created the person or lowered its time of creation.
   */
  readHistory(projectId: number, subjects: HistorySubjects): Promise<readonly HistoricEvent[]>
}
