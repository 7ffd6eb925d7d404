// The calls of one flag as rows to count: those stored as events, each once, and those that were deduplicated.

import { flagCallEventName } from '#core/processing/deduplicate-flag-calls.ts'
import type { FlagUsageQuery } from '#ports/events/insight-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { eventsWithPersonsSql } from '../queries/persons-of-today.ts'
import { bucketParams, isWithinBucketsSql } from './bucket-expression.ts'
import { flagNamed, jsonTextSql, responseNamed } from './named-flag.ts'

/** A query of the calls, and its parameters. */
export interface FlagCallRows {
  /** Rows of `timestamp`, `value` and `person`, the person of today. */
  readonly sql: string
  readonly params: Record<string, unknown>
}

/**
 * Deduplicated calls are joined to persons only if the flag has any.
 * @param importJobIds of imported calls, includes only calls of these jobs; all when absent.
 */
export async function buildFlagCallRows(
  client: ClickHouseClient,
  { projectId, flagKey, buckets }: FlagUsageQuery,
  signal: AbortSignal,
  importJobIds?: readonly number[],
): Promise<FlagCallRows> {
  const params = {
    ...{ ...bucketParams(buckets), project: projectId, flag: flagKey, flag_call: flagCallEventName },
    ...(importJobIds !== undefined && { jobs: [...importJobIds] }),
  }
  const rows = await readRows(client, signal, {
    query: `SELECT 1 FROM deduplicated_flag_calls WHERE ${deduplicatedWithin} LIMIT 1`,
    query_params: params,
  })
  const hasDeduplicated = rows.length > 0
  const calls = eventsWithPersonsSql(
    'timestamp, distinct_id, flag_response AS value',
    `WHERE ${ofFlag} AND ${isWithinBucketsSql('timestamp')}${jobConditionSql(importJobIds)}`,
  )
  const stored = `SELECT timestamp, value, person FROM (${calls})`
  return { sql: hasDeduplicated ? `${stored} UNION ALL ${deduplicatedCalls}` : stored, params }
}

const ofFlag = `project_id = {project:UInt32} AND event = {flag_call:String} AND flag_called = {flag:String}`
const dayOf = (ms: string) => `toDate32(fromUnixTimestamp64Milli(${ms}, 'UTC'))`
const onDays = `toDate32(timestamp) BETWEEN ${dayOf('{from:Int64}')} AND ${dayOf('{end:Int64} - 1')}`
const deduplicatedWithin = `project_id = {project:UInt32} AND ${isWithinBucketsSql('timestamp')} AND feature_flag = {flag:String}`

/**
 * The same rows of all events of these names that name the flag, with the variant as value, and the answer where they
 * name none. Uses the parameters of `buildFlagCallRows`.
 */
export function variantRowsSql(eventNames: readonly string[], importJobIds: readonly number[]): string {
  const variant = jsonTextSql('$feature_flag_variant_key')
  const events = eventsWithPersonsSql(
    `timestamp, distinct_id, if(${variant} = '', ${responseNamed}, ${variant}) AS value`,
    `WHERE project_id = {project:UInt32} AND event IN (${eventNames.map(name => `'${name}'`).join(', ')})
      AND ${isWithinBucketsSql('timestamp')}${jobConditionSql(importJobIds)} AND ${flagNamed} = {flag:String}`,
  )
  return `SELECT timestamp, value, person FROM (${events})`
}

function jobConditionSql(importJobIds: readonly number[] | undefined): string {
  return importJobIds === undefined ? '' : ' AND (NOT historical_migration OR import_job_id IN {jobs:Array(UInt32)})'
}

/**
 * A deduplicated call stores no person: it repeats a stored call of its distinct id and UTC day, and has the person of
 * that call. If it was later stored after all, because the project had stopped deduplicating when it was sent again, it
 * counts as stored. If a repeat replaced the stored call by another flag's, callers are distinguished by distinct id
 * alone.
 */
const deduplicatedCalls = `SELECT timestamp, value, if(o.is_overridden, o.person_id, c.stored_person_id) AS person
  FROM (
    SELECT t.timestamp AS timestamp, t.value AS value, t.distinct_id AS distinct_id,
      if(p.is_known, p.person_id, reinterpretAsUUID(sipHash128(t.distinct_id))) AS stored_person_id
    FROM (
      SELECT timestamp, toDate32(timestamp) AS day, distinct_id, feature_flag_response AS value
      FROM deduplicated_flag_calls FINAL
      WHERE ${deduplicatedWithin} AND (toDate32(timestamp), distinct_id, uuid) NOT IN (
        SELECT toDate32(timestamp), distinct_id, uuid FROM events
        WHERE project_id = {project:UInt32} AND ${onDays} AND event = {flag_call:String}
      )
    ) AS t
    LEFT ANY JOIN (
      SELECT toDate32(timestamp) AS day, distinct_id, person_id, true AS is_known FROM events FINAL
      WHERE ${ofFlag} AND ${onDays}
    ) AS p USING (day, distinct_id)
  ) AS c
  LEFT ANY JOIN (
    SELECT distinct_id, person_id, true AS is_overridden FROM person_distinct_id_overrides FINAL
    WHERE project_id = {project:UInt32}
  ) AS o USING (distinct_id)`
