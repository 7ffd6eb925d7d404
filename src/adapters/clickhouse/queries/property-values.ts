// Lists the values of one property. Values have to be extracted from the text of all properties, so only a limited number
// of events, persons or groups is read.

import type { PropertyValues } from '#core/capture/event-and-property-names.ts'
import type { PropertyValueQuery } from '#ports/events/event-queries.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { requireFilledMirrorSql } from './current-persons.ts'

/** Longer properties are skipped, since reading them is the main cost. */
const sampledCharsMax = 16_384
const sampledEventsMax = 2_000
const sampledSubjectsMax = 50_000
const valueCharsMax = 1_000

/** See `EventQueries.listPropertyValues`. */
export async function listPropertyValues(
  client: ClickHouseClient,
  query: PropertyValueQuery,
  signal: AbortSignal,
): Promise<PropertyValues> {
  const { projectId, of, name, search, limit } = query
  const { rows, rowsMax } = sourceSql(of)
  const isWanted = search === undefined ? '' : 'AND positionCaseInsensitiveUTF8(value_text, {search:String}) > 0'
  const [row] = await readRows<[number, number | string, [string, number | string][]]>(client, signal, {
    query: `WITH (SELECT count() > ${rowsMax} FROM (SELECT 1 ${rows} LIMIT ${rowsMax + 1})) AS is_sample
      SELECT is_sample, count(), arraySlice(groupArray((raw, times)), 1, {limit:UInt32}) FROM (
        SELECT raw, count() AS times,
          if(startsWith(raw, '"'), JSONExtractString(concat('[', raw, ']'), 1), raw) AS value_text
        FROM (
          SELECT JSONExtractRaw(properties, {name:String}) AS raw FROM (
            SELECT properties ${rows} AND length(properties) <= ${sampledCharsMax} ${orderSql(of)} LIMIT ${rowsMax}
          )
        )
        WHERE raw NOT IN ('', 'null') AND lengthUTF8(raw) <= ${valueCharsMax}
        GROUP BY raw HAVING 1 ${isWanted} ORDER BY times DESC, raw
      )`,
    query_params: {
      ...{ project: projectId, name, limit },
      ...(typeof of === 'object' && ('event' in of ? { event: of.event } : { type: of.groupTypeIndex })),
      ...(search === undefined ? {} : { search }),
    },
  })
  const [isSample, count, values] = row!
  return {
    results: values.map(([valueJson, times]) => ({ valueJson, count: Number(times) })),
    valueCount: Number(count),
    isSample: isSample === 1,
  }
}

function sourceSql(of: PropertyValueQuery['of']): { readonly rows: string; readonly rowsMax: number } {
  const project = 'project_id = {project:UInt32}'
  if (typeof of === 'object' && 'event' in of)
    return { rows: `FROM events WHERE ${project} AND event = {event:String}`, rowsMax: sampledEventsMax }
  const today = `FINAL WHERE ${requireFilledMirrorSql()} AND ${project} AND is_deleted = 0`
  const rows = of === 'person' ? `FROM persons ${today}` : `FROM groups ${today} AND group_type_index = {type:UInt8}`
  return { rows, rowsMax: sampledSubjectsMax }
}

/** Events are sampled newest first, persons and groups in any order. */
function orderSql(of: PropertyValueQuery['of']): string {
  return typeof of === 'object' && 'event' in of ? 'ORDER BY project_id DESC, toDate32(timestamp) DESC' : ''
}
