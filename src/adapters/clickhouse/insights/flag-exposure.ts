// Counts whom a flag exposed to its variants: every person once, by the first call or exposure event with a variant.

import { flagCallEventName } from '#core/processing/deduplicate-flag-calls.ts'
import type { ExposureQuery, FlagExposure } from '#ports/events/insight-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { bucketStartSql } from './bucket-expression.ts'
import { buildFlagCallRows, variantRowsSql } from './flag-calls.ts'

/**
 * What SDKs send along with a flag call when a percentage rollout decided for the person. Source:
 * docs/wire/ingestion.md 6.9.
 */
const exposureEventName = '$experiment_exposure'

/** See `InsightQueries.countExposures`. */
export async function countExposures(
  client: ClickHouseClient,
  query: ExposureQuery,
  signal: AbortSignal,
): Promise<FlagExposure> {
  const rows = await buildFlagCallRows(client, query, signal, query.importJobIds)
  // Reading properties of calls costs much. Where they name no variant, which only rules do, the answer is the variant; and a
  // deduplicated call of a rule repeats a stored one of its day with the same variant.
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
