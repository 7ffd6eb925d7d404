// The rows that a trend counts: events within its buckets, each identity once, with the columns that its conditions,
// breakdowns and figures need.

import type { TrendCountQuery } from '#ports/events/insight-queries.ts'
import { eventsWithPersonsSql, requireFilledMirrorSql } from '../queries/current-persons.ts'
import { buildVisibleEventSources } from '../queries/event-sources.ts'
import { bucketStartSql, buildBucketParams, isWithinBucketsSql } from './bucket-expression.ts'
import { buildGroupColumnSql, type ConditionContext, ConditionSql, type TableName } from './condition-sql.ts'
import { buildJsonPropertyAccess, buildNumberSql, wideFlagSet } from './property-access.ts'
import { QueryParams } from './query-params.ts'

export interface TrendSource {
  /** SQL after FROM: `bucket` (the start of its bucket), `value_0`, `value_1`, `counted`. */
  readonly sql: string
  readonly params: Record<string, unknown>
  readonly readsFlags: boolean
}

/** @param readsFlagMap see `buildFlagAccess`. */
export function buildTrendSource(query: TrendCountQuery, reading: Pick<ConditionContext, 'readsFlagMap'>): TrendSource {
  const { math, event, settings, projectId } = query
  const seen = buildVisibleEventSources(query)
  const params = new QueryParams()
  const own: Record<string, unknown> = { project: projectId, ...buildBucketParams(query.buckets) }
  const conditions = new ConditionSql({ ...settings, ...reading }, params)
  const matched = conditions.of(query.condition)
  const values = (query.breakdown?.by ?? []).map(breakdown => conditions.shown(breakdown))

  const isAsked = ['project_id = {project:UInt32}', isWithinBucketsSql('timestamp')]
  if (event !== null) isAsked.push(`event = ${params.text(event)}`)
  const where = `WHERE ${isAsked.join(' AND ')}`
  const groupTables = [...conditions.tables.keys()].flatMap(readGroupTypeIndex)
  const needsPerson = conditions.needsPerson || math.kind === 'persons'
  const columns = new Set([
    `${bucketStartSql('timestamp')} AS bucket`,
    ...(needsPerson ? ['distinct_id'] : []),
    ...groupTables.map(buildGroupColumnSql),
    ...(conditions.tables.get('events') ?? []),
    ...(math.kind === 'groups' ? [buildGroupColumnSql(math.groupTypeIndex)] : []),
    ...(math.kind === 'numbers' ? [`${numberSql(math.property, params)} AS number_value`] : []),
  ])
  const events = [...columns].join(', ')
  let sql = needsPerson
    ? eventsWithPersonsSql(events, where, undefined, seen)
    : `SELECT ${events} FROM ${seen.once} ${where}`
  const persons = conditions.tables.get('persons')
  if (persons !== undefined) {
    sql = `SELECT * FROM (${sql}) AS counted_events LEFT ANY JOIN (
      SELECT uuid AS person, 1 AS person_known, ${persons.join(', ')} FROM persons FINAL ${personsOf}
    ) AS person_today USING (person)`
  }
  for (const index of groupTables) {
    const table = conditions.tables.get(`group_${index}`)!
    sql = `SELECT * FROM (${sql}) AS counted_events LEFT ANY JOIN (
      SELECT group_key AS ${buildGroupColumnSql(index)}, 1 AS group_${index}_known, ${table.join(', ')}
      FROM groups FINAL ${currentGroupsSql(index)}
    ) AS group_${index}_today USING (${buildGroupColumnSql(index)})`
  }
  const outer = ['bucket', ...values.map((value, index) => `${value} AS value_${index}`), ...listCountedColumns(query)]
  return {
    sql: `(SELECT ${outer.join(', ')} FROM (${sql}) WHERE ${matched})`,
    params: { ...own, ...params.values },
    readsFlags: conditions.readsFlags,
  }
}

/**
 * SQL that returns a row if some events of the trend have flags only in the map `flags`. It uses the parameters of
 * `buildBucketParams`, and `project`.
 */
export function buildQueryOfFlagsInMapOnly(query: TrendCountQuery): string {
  return `SELECT 1 FROM ${buildVisibleEventSources(query).copies}
  WHERE project_id = {project:UInt32} AND ${isWithinBucketsSql('timestamp')} AND flag_set = '${wideFlagSet}' LIMIT 1`
}

const personsOf = `WHERE project_id = {project:UInt32} AND is_deleted = 0 AND ${requireFilledMirrorSql()}`

function currentGroupsSql(groupTypeIndex: number): string {
  return `WHERE project_id = {project:UInt32} AND group_type_index = ${groupTypeIndex} AND is_deleted = 0
    AND ${requireFilledMirrorSql()}`
}

function readGroupTypeIndex(table: TableName): number[] {
  return table.startsWith('group_') ? [Number(table.slice('group_'.length))] : []
}

function listCountedColumns({ math }: TrendCountQuery): string[] {
  if (math.kind === 'persons') return ['person AS counted']
  if (math.kind === 'groups') return [`${buildGroupColumnSql(math.groupTypeIndex)} AS counted`]
  return math.kind === 'numbers' ? ['number_value AS counted'] : []
}

/** Numbers with a larger magnitude are ignored, so that no sum exceeds the range of a double. */
const magnitudeMax = '1e300'

/** SQL of a property's value if it is a number or a text that means a number; NULL for anything else. */
function numberSql(property: string, params: QueryParams): string {
  const value = buildNumberSql(buildJsonPropertyAccess('properties', property, params, sql => sql))
  const isCounted = `abs(${value}) <= ${magnitudeMax}`
  // Replaces ignored values by 0 before they become NULL: the engine's min and max include the hidden value of a NULL, and
  // an infinity there would make them NaN.
  return `if(${isCounted}, toNullable(if(${isCounted}, assumeNotNull(${value}), 0)), NULL)`
}
