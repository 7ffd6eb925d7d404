// The views that users' SQL reads: one project's rows, each identity once, with the persons of today. They read as a
// user that sees only rows of the request's project (`connection/analyst.ts`), so they need not name it.

import { createHash } from 'node:crypto'
import { flagCallEventName } from '#core/processing/deduplicate-flag-calls.ts'
import { type SqlScope, viewsDatabase, viewsUser } from '../connection/analyst.ts'
import { isMirrorFilledSql } from '../queries/persons-of-today.ts'
import { seenWithJob } from '../queries/seen-events.ts'

export interface SqlView {
  readonly name: string
  /** Creates the view, or replaces a view of another version. */
  readonly statement: string
  /** The comment of the view of this version. */
  readonly comment: string
}

export function createSqlViews(database: string, scope: SqlScope = 'visible'): SqlView[] {
  const seen = scope === 'job' ? seenWithJob({ database, isVisible: '1', isOfJob: '1' }).once : null
  const eventRows = seen ?? `${database}.events FINAL`
  const overrides = `SELECT distinct_id, person_id, true AS is_overridden FROM ${database}.person_distinct_id_overrides FINAL`
  const person = 'if(o.is_overridden, o.person_id, e.person_id) AS person_id'
  const isFilled = isMirrorFilledSql(database)
  const groupColumns = [0, 1, 2, 3, 4].map(index => `e.\`$group_${index}\` AS \`$group_${index}\``).join(', ')
  const selects = {
    events: `SELECT e.uuid AS uuid, e.event AS event, e.distinct_id AS distinct_id, e.timestamp AS timestamp,
        e.properties AS properties, ${person}, e.person_properties AS person_properties,
        e.person_created_at AS person_created_at, e.person_mode AS person_mode, ${groupColumns},
        e.\`$session_id\` AS \`$session_id\`, e.\`$window_id\` AS \`$window_id\`, e.flags AS flags,
        e.flag_called AS flag_called, e.flag_response AS flag_response, e.elements_chain AS elements_chain,
        e.lane AS lane, e.historical_migration AS historical_migration, e.import_job_id AS import_job_id,
        e.captured_at AS captured_at, e.created_at AS created_at
      FROM ${seen === null ? `${database}.events AS e FINAL` : `${seen} AS e`} LEFT ANY JOIN (${overrides}) AS o USING (distinct_id)`,
    persons: `SELECT uuid AS id, properties, created_at, is_identified FROM ${database}.persons FINAL
      WHERE ${isFilled} AND is_deleted = 0`,
    groups: `SELECT group_type_index, group_key, properties, created_at FROM ${database}.groups FINAL
      WHERE ${isFilled} AND is_deleted = 0`,
    flag_calls: `SELECT e.uuid AS uuid, e.timestamp AS timestamp, e.distinct_id AS distinct_id, ${person},
        e.flag_key AS flag_key, e.flag_response AS flag_response, e.is_thinned AS is_thinned,
        e.historical_migration AS historical_migration
      FROM (
        SELECT uuid, timestamp, distinct_id, person_id, flag_called AS flag_key, flag_response, false AS is_thinned,
          historical_migration
        FROM ${eventRows} WHERE event = '${flagCallEventName}'
        UNION ALL
        ${deduplicatedCallsSql(database, eventRows)}
      ) AS e LEFT ANY JOIN (${overrides}) AS o USING (distinct_id)`,
  }
  return Object.entries(selects).map(([name, select]) => {
    const comment = `pennon ${createHash('sha256').update(select).digest('hex').slice(0, 16)}`
    const statement = `CREATE OR REPLACE VIEW ${viewsDatabase(database, scope)}.${name}
      DEFINER = ${viewsUser(scope)} SQL SECURITY DEFINER AS ${select} COMMENT '${comment}'`
    return { name, statement, comment }
  })
}

/**
 * As usage counts them (`insights/flag-calls.ts`): a deduplicated call was made by the person of the stored call that it
 * repeats, and one that was stored all the same counts as stored. Stored calls are read only where a project deduplicates.
 */
function deduplicatedCallsSql(database: string, eventRows: string): string {
  const stored = `FROM ${eventRows}
    WHERE event = '${flagCallEventName}' AND (SELECT count() > 0 FROM ${database}.deduplicated_flag_calls)`
  return `SELECT t.uuid AS uuid, toDateTime64(t.timestamp, 6, 'UTC') AS timestamp, t.distinct_id AS distinct_id,
      if(p.is_known, p.person_id, reinterpretAsUUID(sipHash128(t.distinct_id))) AS person_id,
      t.flag_key AS flag_key, t.flag_response AS flag_response, true AS is_thinned, false AS historical_migration
    FROM (
      SELECT uuid, timestamp, toDate32(timestamp) AS day, distinct_id, toString(feature_flag) AS flag_key,
        feature_flag_response AS flag_response
      FROM ${database}.deduplicated_flag_calls FINAL
      WHERE (toDate32(timestamp), distinct_id, uuid) NOT IN (SELECT toDate32(timestamp), distinct_id, uuid ${stored})
    ) AS t
    LEFT ANY JOIN (
      SELECT toDate32(timestamp) AS day, distinct_id, toString(flag_called) AS flag_key, person_id, true AS is_known ${stored}
    ) AS p USING (day, distinct_id, flag_key)`
}
