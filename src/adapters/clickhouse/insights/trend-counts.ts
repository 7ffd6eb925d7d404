// Counts one series of a trend. One query usually suffices; another is needed when some events have flags only in the
// column `flags` (a map), or when a breakdown has more values than can be combined here.

import { ClickHouseError } from '@clickhouse/client'
import { readRowsInSlices } from '#adapters/clickhouse/queries/rows-in-slices.ts'
import type { NumberAggregate, TrendMath } from '#core/insights/trends-query.ts'
import {
  type BreakdownValue,
  TooManyConditions,
  type TrendCountQuery,
  type TrendLine,
  UnsupportedPattern,
} from '#ports/events/insight-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { buildBucketParams } from './bucket-expression.ts'
import { QueryParams } from './query-params.ts'
import {
  buildTrendLines,
  createEmptyValue,
  isAdditiveMath,
  isAverageMath,
  otherValue,
  rankBreakdownValues,
  type TrendCell,
} from './trend-lines.ts'
import { buildQueryOfFlagsInMapOnly, buildTrendSource, type TrendSource } from './trend-source.ts'

/** See `InsightQueries.countTrend`. @throws UnsupportedPattern, TooManyConditions */
export async function countTrend(
  client: ClickHouseClient,
  query: TrendCountQuery,
  signal: AbortSignal,
): Promise<readonly TrendLine[]> {
  try {
    const source = buildSource(query, false)
    const readsFlagMap = source.readsFlags && (await hasWideFlags(client, query, signal))
    return await countIn(client, query, readsFlagMap ? buildSource(query, true) : source, signal)
  } catch (error) {
    if (error instanceof ClickHouseError && error.type === 'CANNOT_COMPILE_REGEXP') throw new UnsupportedPattern()
    throw error
  }
}

async function hasWideFlags(client: ClickHouseClient, query: TrendCountQuery, signal: AbortSignal): Promise<boolean> {
  const rows = await readRows(client, signal, {
    query: buildQueryOfFlagsInMapOnly(query),
    query_params: { project: query.projectId, ...buildBucketParams(query.buckets) },
    use_multipart_params: true,
  })
  return rows.length > 0
}

/**
 * The most bytes of the source's SQL. The whole query is one form field, of up to 128 KiB; the text around the source is
 * short.
 */
const sourceBytesMax = 120 * 1024

/** @throws TooManyConditions */
function buildSource(query: TrendCountQuery, readsFlagMap: boolean) {
  const source = buildTrendSource(query, { readsFlagMap })
  if (Buffer.byteLength(source.sql) > sourceBytesMax) throw new TooManyConditions()
  return source
}

/** The most rows (one per bucket and value) that are read and combined here. */
const cellCountMax = 20_000

async function countIn(
  client: ClickHouseClient,
  query: TrendCountQuery,
  source: TrendSource,
  signal: AbortSignal,
): Promise<readonly TrendLine[]> {
  const { breakdown, math } = query
  const given = breakdown?.values
  const read = (values?: readonly BreakdownValue[]) => readCells(client, { query, source, values, signal })
  const all = await read(given)
  if (breakdown === null || given !== undefined) return buildTrendLines(query, all.cells, given ?? [])
  const ranked = all.isWhole
    ? rankBreakdownValues(query, all.cells, breakdown.limit)
    : await readTop(client, query, source, signal)
  const shown = new Set([...ranked, createEmptyValue(query)].map(value => JSON.stringify(value)))
  const isTruncated = !all.isWhole || all.cells.some(({ value }) => !shown.has(JSON.stringify(value)))
  // Values outside the ranking share one line. If their figures cannot be added, such as persons or percentiles, query
  // again.
  if (!isTruncated || (all.isWhole && isAdditiveMath(math))) return buildTrendLines(query, all.cells, ranked)
  const { cells } = await read(ranked)
  return buildTrendLines(query, cells, ranked)
}

interface ReadOptions {
  readonly query: TrendCountQuery
  readonly source: TrendSource
  /** The values to count separately, while all other values are combined; undefined to count every value separately. */
  readonly values: readonly BreakdownValue[] | undefined
  readonly signal: AbortSignal
}

async function readCells(
  client: ClickHouseClient,
  { query, source, values, signal }: ReadOptions,
): Promise<{ cells: TrendCell[]; isWhole: boolean }> {
  const count = query.breakdown?.by.length ?? 0
  const columns = listValueColumns(count)
  const kept = new QueryParams('kept_')
  // Events without any value always have a separate line.
  const keptTexts = [...(values ?? []), createEmptyValue(query)].map(joinValue)
  const isKept = `${joinValueSql(columns)} IN (${kept.list('String', keptTexts)})`
  const shown = columns.map(column => (values === undefined ? column : `if(is_kept, ${column}, '')`))
  const keys = count === 0 ? '' : `, ${shown.map((sql, index) => `${sql} AS shown_${index}`).join(', ')}`
  const groups = count === 0 ? '' : `, ${shown.map((_, index) => `shown_${index}`).join(', ')}`
  const rows = values === undefined ? source.sql : `(SELECT *, ${isKept} AS is_kept FROM ${source.sql})`
  const other = values === undefined ? 'toUInt8(0)' : 'NOT is_kept'
  const { figure, weight } = figureSql(query.math)
  const result = await client.query({
    query: `SELECT bucket, ${figure}, ${weight}, ${other} AS is_other ${keys}
      FROM ${rows}
      GROUP BY bucket, is_other ${groups} LIMIT ${cellCountMax + 1}`,
    query_params: { ...source.params, ...(values !== undefined && kept.values) },
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  type Row = [bucket: number | string, figure: number, weight: number, other: number]
  const indexOf = new Map(query.buckets.edges.map((edge, index) => [edge, index]))
  const cells: TrendCell[] = []
  const found = await readRowsInSlices<[...Row, ...string[]]>(result)
  for (const [edge, figure, weight, isOther, ...value] of found) {
    const bucket = indexOf.get(Number(edge))!
    cells.push({ bucket, figure, weight, value: isOther ? otherValue : value })
  }
  return { cells: cells.slice(0, cellCountMax), isWhole: cells.length <= cellCountMax }
}

/** Reads the values that rank first; needed when there are more values than can be read. */
async function readTop(
  client: ClickHouseClient,
  query: TrendCountQuery,
  source: TrendSource,
  signal: AbortSignal,
): Promise<readonly BreakdownValue[]> {
  const columns = listValueColumns(query.breakdown!.by.length)
  const values = columns.join(', ')
  const { figure, weight } = figureSql(query.math)
  const shown = isAverageMath(query.math) ? 'if(weight = 0, 0, figure / weight)' : 'figure'
  return readRows<string[]>(client, signal, {
    query: `SELECT ${values} FROM (
        SELECT ${values}, ${figure} AS figure, ${weight} AS weight FROM ${source.sql}
        WHERE NOT (${columns.map(column => `${column} = ''`).join(' AND ')}) GROUP BY bucket, ${values}
      ) GROUP BY ${values} ORDER BY sum(${shown}) DESC, ${values} LIMIT ${query.breakdown!.limit}`,
    query_params: source.params,
    use_multipart_params: true,
  })
}

function listValueColumns(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `value_${index}`)
}

/** Joins the one or two parts of a breakdown value into one text; different values have different texts. */
function joinValue(value: BreakdownValue): string {
  return value.map(text => `${Buffer.byteLength(text)}:${text}`).join('')
}

function joinValueSql(columns: readonly string[]): string {
  return `concat('', ${columns.map(column => `toString(length(${column})), ':', ${column}`).join(', ')})`
}

/** SQL of a figure (`figure`), and of the number of rows from which it is computed (`weight`). */
function figureSql(math: TrendMath): { figure: string; weight: string } {
  switch (math.kind) {
    case 'events':
      return { figure: 'toFloat64(count())', weight: 'toFloat64(count())' }
    case 'persons':
      return { figure: 'toFloat64(uniqExact(counted))', weight: 'toFloat64(count())' }
    case 'groups':
      return { figure: `toFloat64(uniqExactIf(counted, counted != ''))`, weight: 'toFloat64(count())' }
    case 'numbers':
      return { figure: `ifNull(${numberAggregate[math.aggregate]}, 0)`, weight: 'toFloat64(count(counted))' }
  }
}

/** A percentile is interpolated linearly between the two values around its rank. */
const numberAggregate: Readonly<Record<NumberAggregate, string>> = {
  sum: 'sum(counted)',
  avg: 'sum(counted)',
  min: 'min(counted)',
  max: 'max(counted)',
  median: 'quantileExactInclusive(0.5)(counted)',
  p90: 'quantileExactInclusive(0.9)(counted)',
  p95: 'quantileExactInclusive(0.95)(counted)',
  p99: 'quantileExactInclusive(0.99)(counted)',
}
