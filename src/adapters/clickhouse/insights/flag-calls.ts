// Builds the query of one flag's calls as rows to count: calls that are stored as events, each once, and calls that were
// deduplicated.

import { flagCallEventName } from '#core/processing/deduplicate-flag-calls.ts'
import type { ExposureQuery, FlagExposure, FlagUsageQuery } from '#ports/events/insight-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { eventsWithPersonsSql } from '../queries/current-persons.ts'
import { bucketStartSql, buildBucketParams, isWithinBucketsSql } from './bucket-expression.ts'

/** A query of the calls, and its parameters. */
export interface FlagCallRows {
  /** Returns the columns `timestamp`, `value` and `person` (the person of today). */
  readonly sql: string
  readonly params: Record<string, unknown>
}

/**
 * Joins deduplicated calls to persons only if the flag has such calls. @param importJobIds if given, imported calls of all
 * other jobs are left out.
 */
export async function buildFlagCallRows(
  client: ClickHouseClient,
  { projectId, flagKey, buckets }: FlagUsageQuery,
  signal: AbortSignal,
  importJobIds?: readonly number[],
): Promise<FlagCallRows> {
  const params = {
    ...{ ...buildBucketParams(buckets), project: projectId, flag: flagKey, flag_call: flagCallEventName },
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
const daySql = (ms: string) => `toDate32(fromUnixTimestamp64Milli(${ms}, 'UTC'))`
const onDays = `toDate32(timestamp) BETWEEN ${daySql('{from:Int64}')} AND ${daySql('{end:Int64} - 1')}`
const deduplicatedWithin = `project_id = {project:UInt32} AND ${isWithinBucketsSql('timestamp')} AND feature_flag = {flag:String}`

/**
 * SQL of rows like those of `buildFlagCallRows`, from the events with these names that name the flag. The value is the
 * variant, or the flag's answer if an event names no variant. Uses the same parameters.
 */
function variantRowsSql(eventNames: readonly string[], importJobIds: readonly number[]): string {
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
 * A deduplicated call stores no person: it repeats a stored call with the same distinct id and UTC day, and has the person
 * of that call. If it was later stored after all, because the project had stopped deduplicating when the call was sent
 * again, it counts as stored. If the stored call no longer exists, because it was sent again as a call of another flag, the
 * distinct id stands for the person.
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

/**
 * SQL of the flag, and of the answer, that an event's properties name, with the same results as `readFlagCall`
 * (core/processing/deduplicate-flag-calls.ts). The regular expressions are for properties that this engine's parser refuses
 * because they contain a number of 30 digits.
 */
const flagNamed = `if(isValidJSON(properties), ${jsonTextSql('$feature_flag')},
    extract(properties, '"[$]feature_flag"\\\\s*:\\\\s*"([^"\\\\\\\\]*)"'))`
const responseNamed = `if(isValidJSON(properties),
    if(JSONType(properties, '$feature_flag_response') = 'Bool',
      JSONExtractRaw(properties, '$feature_flag_response'),
      ${jsonTextSql('$feature_flag_response')}),
    trim(BOTH '"' FROM extract(properties,
      '"[$]feature_flag_response"\\\\s*:\\\\s*(true|false|"[^"\\\\\\\\]*")')))`

/** SQL of a property's text; '' for a value of another type. */
function jsonTextSql(key: string): string {
  return `if(JSONType(properties, '${key}') = 'String', JSONExtractString(properties, '${key}'), '')`
}

/**
 * SDKs send this event along with a flag call when a percentage rollout decided for the person. Source:
 * docs/wire/ingestion.md 6.9.
 */
const exposureEventName = '$experiment_exposure'

/**
 * See `InsightQueries.countExposures`. Counts every person once, at the time of the first call or exposure event with a
 * variant.
 */
export async function countExposures(
  client: ClickHouseClient,
  query: ExposureQuery,
  signal: AbortSignal,
): Promise<FlagExposure> {
  const rows = await buildFlagCallRows(client, query, signal, query.importJobIds)
  // Reading the properties of calls is expensive, so it is done only for flags with rules: only their calls name a variant;
  // for other flags, the answer is the variant. A deduplicated call of a rule repeats a stored call of its day with the
  // same variant.
  const exposures = query.isOfRules
    ? variantRowsSql([flagCallEventName, exposureEventName], query.importJobIds)
    : `${rows.sql} UNION ALL ${variantRowsSql([exposureEventName], query.importJobIds)}`
  const found = await readRows<[0 | 1 | boolean, string, number | string, number]>(client, signal, {
    query: `SELECT is_multiple, if(is_multiple, '', variant) AS only, if(is_multiple, 0, start) AS first,
        toFloat64(count())
      FROM (
        SELECT min(value) != max(value) AS is_multiple, toString(any(value)) AS variant, ${bucketStartSql('min(timestamp)')} AS start
        FROM (${exposures}) WHERE value IN {variants:Array(String)} GROUP BY person
      ) GROUP BY is_multiple, only, first`,
    query_params: { ...rows.params, variants: [...query.variants] },
  })
  const { edges } = query.buckets
  const indexOf = new Map(edges.map((ms, index) => [ms, index]))
  const firsts = new Map(query.variants.map(variant => [variant, new Array<number>(edges.length - 1).fill(0)]))
  let multiple = 0
  for (const row of found) {
    const [isMultiple, variant, start, persons] = row
    if (isMultiple) multiple = persons
    else firsts.get(variant)![indexOf.get(Number(start))!] = persons
  }
  return { firsts: query.variants.map(variant => firsts.get(variant)!), multiple }
}
