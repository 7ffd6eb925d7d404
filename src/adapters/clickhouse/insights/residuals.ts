// Lets Node decide the values that conditions in SQL leave to it: reads their distinct values, within bounds, and holds
// each against the same matcher that evaluates flags.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { readRowsInSlices } from '#adapters/clickhouse/queries/rows-in-slices.ts'
import { TooManyValues } from '#ports/events/insight-queries.ts'
import type { ClickHouseClient } from '../connection/clickhouse-clients.ts'
import { type Decided, digestSql, type Leaf } from './condition-sql.ts'
import { matchesResidual } from './property-test.ts'

/** The most distinct values of a query; reading them and sending them back takes at most about a second. */
const valueCountMax = 10_000
const valueBytesMax = 16 * 1024 * 1024

export interface Residuals {
  readonly leaves: readonly Leaf[]
  /** SQL of the columns that the conditions use. */
  readonly columns: readonly string[]
  /** SQL after FROM; its rows may include every copy of an identity. */
  readonly source: string
  readonly params: Record<string, unknown>
}

/**
 * @throws TooManyValues
 */
export async function decideResiduals(
  client: ClickHouseClient,
  { leaves, columns, source, params }: Residuals,
  nowMs: number,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Decided>> {
  const pairs = leaves.map(({ residual }, index) => `(toUInt16(${index}), ${residual})`)
  const result = await client.query({
    query: `SELECT leaf, text, ${digestSql('text')}, bytes FROM (
        SELECT leaf, text, sum(length(text)) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS bytes FROM (
          SELECT DISTINCT pair.1 AS leaf, pair.2 AS text FROM (
            SELECT arrayJoin(arrayFilter(one -> one.2 != '', [${pairs.join(', ')}])) AS pair FROM (
              SELECT ${columns.join(', ')} FROM ${source}
            )
          ) LIMIT ${valueCountMax + 1}
        )
      ) WHERE bytes - length(text) <= ${valueBytesMax}`,
    query_params: params,
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const rows = await readRowsInSlices<[leaf: number, text: string, digest: string, bytes: number | string]>(result)
  if (rows.length > valueCountMax || Number(rows.at(-1)?.[3] ?? 0) > valueBytesMax) throw new TooManyValues()
  const decided = leaves.map(() => ({ known: [] as string[], matching: [] as string[] }))
  let turnEndMs = performance.now() + turnMs
  for (const [index, text, digest] of rows) {
    const leaf = leaves[index]!
    decided[index]!.known.push(digest)
    const answer = matchesResidual(text, leaf.key, leaf, nowMs)
    let matches = answer === true
    if (typeof answer !== 'boolean') {
      let step = answer.next()
      for (; !step.done; step = answer.next()) await nextTurn()
      matches = step.value
    }
    if (matches) decided[index]!.matching.push(digest)
    if (performance.now() < turnEndMs) continue
    await nextTurn()
    signal.throwIfAborted()
    turnEndMs = performance.now() + turnMs
  }
  return new Map(leaves.map((leaf, index) => [leaf.id, decided[index]!]))
}

const turnMs = 10
