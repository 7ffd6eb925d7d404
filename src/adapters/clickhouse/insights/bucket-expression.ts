// Finds the bucket of a row in SQL. Node handles time zones and calendars (`core/insights/buckets.ts`): a query gets only
// the edges of the buckets.

import type { Buckets } from '#core/insights/buckets.ts'

/**
 * SQL of the edge (epoch ms) at which a row's bucket begins. It uses the parameters of `buildBucketParams`. Node finds the
 * bucket by this edge: searching for the bucket's index in SQL would take three times as long.
 * @param column a DateTime64 within the edges; an earlier time would count for the first bucket.
 */
export function bucketStartSql(column: string): string {
  return `roundDown(${epochMsSql(column)}, arrayConcat({edges:Array(Int64)}, {later_edges:Array(Int64)}))`
}

/** SQL that converts a DateTime64 to epoch ms. */
export function epochMsSql(column: string): string {
  return `toUnixTimestamp64Milli(${column})`
}

/**
 * SQL of the condition that a row's time lies within the buckets. It uses the parameters `from` and `end`, and lets the
 * engine select the days by the sort key.
 */
export function isWithinBucketsSql(column: string): string {
  return `${column} >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND ${column} < fromUnixTimestamp64Milli({end:Int64}, 'UTC')`
}

/** The parameters that `bucketStartSql` and `isWithinBucketsSql` use. @param buckets at least one. */
export function buildBucketParams({ edges }: Pick<Buckets, 'edges'>): Record<string, unknown> {
  const starts = edges.slice(0, -1)
  return {
    ...{ edges: starts.slice(0, edgesPerField), later_edges: starts.slice(edgesPerField) },
    ...{ from: edges[0]!, end: edges.at(-1)! },
  }
}

/**
 * The most edges in one parameter: the server accepts 128 KiB per form field, and a query has up to 10,000 edges of 14
 * characters.
 */
const edgesPerField = 5_000
