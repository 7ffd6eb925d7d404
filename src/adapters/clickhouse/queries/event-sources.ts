// The rows that a query of events reads: those of the table `events`, or also the pending rows of one import job, as if the
// job were published (docs/decisions/0079). Queries of the two kinds of rows differ only in which of these SQL texts they
// contain.

import assert from 'node:assert/strict'
import { firstImportJobId } from '#core/imports/import-job.ts'
import type { EventScope } from '#ports/events/event-queries.ts'

export interface EventSources {
  /** SQL after FROM: each identity once, the copy that counts. */
  readonly once: string
  /** SQL after FROM: all copies of each identity. */
  readonly copies: string
  /**
   * Joins two conditions into SQL. Where possible, further columns are read only for rows that satisfy the first condition.
   */
  readonly where: (first: string, rest: string) => string
}

export const visibleEvents: EventSources = {
  once: 'events FINAL',
  copies: 'events',
  where: (first, rest) => `PREWHERE ${first} WHERE ${rest}`,
}

export function buildVisibleEventSources({ projectId, importJobId }: EventScope): EventSources {
  if (importJobId === undefined) return visibleEvents
  assert(Number.isInteger(importJobId) && importJobId >= firstImportJobId)
  const isVisible = `project_id = ${Number(projectId)}`
  return buildEventSourcesWithJob({ isVisible, isOfJob: `import_partition = ${importJobId} AND ${isVisible}` })
}

/**
 * SQL of the rows of `events` and of a job's rows in `events_pending`, as if they were in one table. @param database given
 * if it is not the connection's database. @param isOfJob selects the job's rows before FINAL, because a later copy in
 * another pending job would hide the copy in this job.
 */
export function buildEventSourcesWithJob({
  database,
  isVisible,
  isOfJob,
}: {
  readonly database?: string
  readonly isVisible: string
  readonly isOfJob: string
}): EventSources {
  const prefix = database === undefined ? '' : `${database}.`
  const [visible, pending] = [`${prefix}events`, `${prefix}events_pending`]
  const identity = 'toDate32(timestamp), event, distinct_id, uuid'
  const named = 'toDate32(timestamp) AS day, event, distinct_id, uuid, row_version'
  // Limits the search for losing copies to days that have rows in both tables: an identity includes its day, and most
  // imports share no day with other events.
  const isOnSharedDay = `toDate32(timestamp) IN (SELECT DISTINCT toDate32(timestamp) FROM ${visible} WHERE ${isVisible})`
  // FINAL chooses the copy that counts within each table. For an identity that is in both tables, the copy with the higher
  // version counts, as it will after the job is published.
  const losingCopiesSql = (loser: string) => `(SELECT day, event, distinct_id, uuid FROM (
      SELECT ${named} FROM ${pending} FINAL PREWHERE ${isOfJob} WHERE ${isOnSharedDay}
    ) AS p INNER JOIN (
      SELECT ${named} FROM ${visible} FINAL WHERE ${isVisible} AND uuid IN (
        SELECT uuid FROM ${pending} PREWHERE ${isOfJob} WHERE ${isOnSharedDay})
    ) AS v USING (day, event, distinct_id, uuid) WHERE ${loser})`
  return {
    once: `(
      SELECT * FROM ${visible} FINAL WHERE ${isVisible} AND (${identity}) NOT IN ${losingCopiesSql('v.row_version < p.row_version')}
      UNION ALL
      SELECT * FROM ${pending} FINAL PREWHERE ${isOfJob}
      WHERE (${identity}) NOT IN ${losingCopiesSql('v.row_version >= p.row_version')}
    )`,
    copies: `(
      SELECT * FROM ${visible} WHERE ${isVisible} UNION ALL SELECT * FROM ${pending} PREWHERE ${isOfJob}
    )`,
    where: (first, rest) => `WHERE ${first} AND ${rest}`,
  }
}
