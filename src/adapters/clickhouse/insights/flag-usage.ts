// Answers the usage of a flag from cached counts, and from the calls where no valid count is cached.

import { type FlagUsage, rankUsage, type ValueUsage } from '#core/insights/flag-usage.ts'
import type { FlagUsageQuery } from '#ports/events/insight-queries.ts'
import type { ClickHouseClient } from '../connection/clickhouse-clients.ts'
import { findCachedUsage } from './cached-usage.ts'
import { countFromRows } from './flag-usage-rows.ts'

/**
 * The most runs of buckets that are counted separately; more are counted as one run that includes the cached buckets
 * between them.
 */
const runsMax = 10

/** See `InsightQueries.countFlagUsage`. */
export async function countFlagUsage(
  client: ClickHouseClient,
  query: FlagUsageQuery,
  signal: AbortSignal,
): Promise<FlagUsage> {
  const { edges } = query.buckets
  const kept = new Map((await findCachedUsage(client, query, signal)).map(count => [count.fromMs, count]))
  const values: ValueUsage[] = []
  const rests: Omit<ValueUsage, 'value'>[] = []
  for (const { from, end } of findUncachedRuns(edges.length - 1, index => kept.has(edges[index]!))) {
    const run = { ...query, buckets: { edges: edges.slice(from, end + 1) } }
    const counted = await countFromRows(client, run, signal)
    const placeCounts = (counts: readonly number[]) => padWithZeros(counts, from, edges.length - 1)
    const inPlace = ({ calls, persons }: Omit<ValueUsage, 'value'>) => ({
      calls: placeCounts(calls),
      persons: placeCounts(persons),
    })
    values.push(...counted.values.map(usage => ({ value: usage.value, ...inPlace(usage) })))
    if (counted.rest !== null) rests.push(inPlace(counted.rest))
    for (let index = from; index < end; index++) kept.delete(edges[index]!)
  }
  const keptOf = new Map<string | null, { calls: number[]; persons: number[] }>()
  for (const [index, fromMs] of edges.slice(0, -1).entries()) {
    const count = kept.get(fromMs)
    if (count === undefined) continue
    const cells = count.rest === null ? count.values : [...count.values, { ...count.rest, value: null }]
    for (const { value, calls, persons } of cells) {
      const line = keptOf.get(value) ?? {
        calls: padWithZeros([], 0, edges.length - 1),
        persons: padWithZeros([], 0, edges.length - 1),
      }
      keptOf.set(value, line)
      line.calls[index] = calls
      line.persons[index] = persons
    }
  }
  for (const [value, line] of keptOf)
    if (value === null) rests.push(line)
    else values.push({ value, ...line })
  return rankUsage(values, rests)
}

/** The runs of buckets without a cached count: indexes, `end` exclusive. */
export function findUncachedRuns(count: number, isKept: (index: number) => boolean): { from: number; end: number }[] {
  const runs: { from: number; end: number }[] = []
  for (let index = 0; index < count; index++) {
    if (isKept(index)) continue
    const last = runs.at(-1)
    if (last?.end === index) last.end++
    else runs.push({ from: index, end: index + 1 })
  }
  return runs.length > runsMax ? [{ from: runs[0]!.from, end: runs.at(-1)!.end }] : runs
}

/** Adds zeros before and after the counts of a run, so that they cover all buckets. */
function padWithZeros(counts: readonly number[], from: number, bucketCount: number): number[] {
  const placed = new Array<number>(bucketCount).fill(0)
  for (const [index, count] of counts.entries()) placed[from + index] = count
  return placed
}
