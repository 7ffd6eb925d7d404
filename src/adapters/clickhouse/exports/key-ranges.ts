// Divides the rows of a day by their sort key, so that no single query has to read through all of a busy day.

import { readRows } from '../connection/clickhouse-clients.ts'
import type { RunExportQuery } from './export-queries.ts'

/** Exclusive below, inclusive above; null is unbounded. */
export interface KeyRange {
  readonly above: KeyPlace | null
  readonly upTo: KeyPlace | null
}

export interface KeyPlace {
  readonly event: string
  readonly distinctId: string
  readonly uuid: string
}

export const wholeRange: KeyRange = { above: null, upTo: null }

/** How many keys are sampled for each range: several, so that an uneven distribution of the samples averages out. */
const samplesPerRange = 8

/**
 * Returns about `count` ranges that together contain every row. Their sizes are only roughly equal, and there are fewer
 * ranges when few keys were sampled. @param conditions select the rows and use key columns only. @param rowCount the number
 * of these rows.
 */
export async function findKeyRanges(
  ask: RunExportQuery,
  {
    conditions,
    params,
    rowCount,
    count,
  }: {
    readonly conditions: string
    readonly params: Readonly<Record<string, unknown>>
    readonly rowCount: number
    readonly count: number
  },
): Promise<readonly KeyRange[]> {
  if (count <= 1) return [wholeRange]
  const oneIn = Math.max(1, Math.floor(rowCount / (count * samplesPerRange)))
  const samples = await ask(async (client, signal) => {
    return readRows<[event: string, distinctId: string, uuid: string]>(client, signal, {
      query: `SELECT DISTINCT event, distinct_id, toString(uuid) AS id FROM events
        WHERE ${conditions} AND sipHash64(uuid) % {one_in:UInt64} = 0 ORDER BY event, distinct_id, toUUID(id)
        LIMIT {sample_count:UInt32}`,
      query_params: { ...params, one_in: oneIn, sample_count: 4 * count * samplesPerRange },
    })
  })
  const step = Math.max(1, Math.ceil(samples.length / count))
  const edges = samples
    .filter((_, index) => index > 0 && index % step === 0)
    .map(([event, distinctId, uuid]) => ({ event, distinctId, uuid }))
  return [null, ...edges].map((above, index) => ({ above, upTo: edges[index] ?? null }))
}

/** The range as an SQL condition, written so that the primary index can skip the granules outside the range. */
export function buildRangeCondition({ above, upTo }: KeyRange): { condition: string; params: Record<string, unknown> } {
  const conditions: string[] = []
  const params: Record<string, unknown> = {}
  const addBound = (name: string, place: KeyPlace, beyond: '>' | '<', last: '>' | '<=') => {
    const [event, id, uuid] = [`{${name}_event:String}`, `{${name}_id:String}`, `{${name}_uuid:UUID}`]
    conditions.push(
      `event ${beyond}= ${event} AND (event ${beyond} ${event} OR (event = ${event} AND (distinct_id ${beyond} ${id}
        OR (distinct_id = ${id} AND uuid ${last} ${uuid}))))`,
    )
    Object.assign(params, {
      [`${name}_event`]: place.event,
      [`${name}_id`]: place.distinctId,
      [`${name}_uuid`]: place.uuid,
    })
  }
  if (above !== null) addBound('above', above, '>', '>')
  if (upTo !== null) addBound('up_to', upTo, '<', '<=')
  return { condition: conditions.length === 0 ? 'true' : conditions.join(' AND '), params }
}
