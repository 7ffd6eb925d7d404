// Finds the current person of an event. A row keeps the person that its distinct id had when the row was stored; when a
// merge moves the distinct id to another person, it stores an override. Every query that returns, filters or counts persons
// uses this.

import { fillingMessage } from '../connection/clickhouse-errors.ts'
import { type EventSources, visibleEvents } from './event-sources.ts'

/**
 * Builds a query of events, each identity once, with the current person as `person`.
 * @param columns columns and aliased expressions to read of each event; must include `distinct_id`.
 * @param conditions `WHERE …`, or `PREWHERE … WHERE …`, on events as they are stored.
 * @param distinctIds a query of the distinct ids that the events can have. It limits which overrides are read; if absent,
 * all overrides of the project are read. @param events the result of `buildVisibleEventSources`. The query takes the
 * parameter `project`, and the conditions have to include the project.
 */
export function eventsWithPersonsSql(
  columns: string,
  conditions: string,
  distinctIds?: string,
  { once }: Pick<EventSources, 'once'> = visibleEvents,
): string {
  const bound = distinctIds === undefined ? '' : `AND distinct_id IN (${distinctIds})`
  return `SELECT e.*, if(o.is_overridden, o.person_id, e.stored_person_id) AS person
    FROM (SELECT ${columns}, person_id AS stored_person_id FROM ${once} ${conditions}) AS e
    LEFT ANY JOIN (
      SELECT distinct_id, person_id, true AS is_overridden FROM person_distinct_id_overrides FINAL
      WHERE project_id = {project:UInt32} ${bound}
    ) AS o USING (distinct_id)`
}

/**
 * A condition for queries of the tables `persons` and `groups` (the mirror): true once they are filled. Until then, the
 * query fails, which becomes a `MirrorFillingError`: a count from partial tables would be wrong, and nothing would show it.
 * @param database given if the connection uses another database.
 */
export function requireFilledMirrorSql(database?: string): string {
  const table = database === undefined ? 'subject_mirror_fill' : `${database}.subject_mirror_fill`
  return `(SELECT throwIf(ifNull(argMax(is_complete, version), 0) = 0, '${fillingMessage}') FROM ${table}) = 0`
}
