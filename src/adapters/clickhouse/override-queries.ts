// Which person a distinct id's earlier events lead to by now, of thousands in one query. Asked by a worker that starts,
// before inserts; it goes their way, so that queries of people do not hold the worker up.

import { TupleParam } from '@clickhouse/client'
import type { PersonIdOverride } from '#core/events/stored-event.ts'
import type { ClickHouseClients } from './clickhouse-clients.ts'

export interface IdOfProject {
  readonly projectId: number
  readonly distinctId: string
}

/** A form field of the server holds 128 KiB: a unit of UTF-16 is three bytes at most, or two when it is escaped. */
const listCharsMax = 40_000
const charsPerId = 20
/** 4 MB. */
const listsPerQueryMax = 100

type OverrideRow = [projectId: number, distinctId: string, personId: string, version: number | string]

/** See `EventStore.findOverrides`. */
export async function findOverrides(
  clients: Pick<ClickHouseClients, 'write'>,
  ids: readonly IdOfProject[],
): Promise<PersonIdOverride[]> {
  const lists = listsOf(ids)
  const found: PersonIdOverride[] = []
  for (let from = 0; from < lists.length; from += listsPerQueryMax)
    found.push(...(await findIn(clients, lists.slice(from, from + listsPerQueryMax))))
  return found
}

async function findIn(
  clients: Pick<ClickHouseClients, 'write'>,
  lists: readonly (readonly IdOfProject[])[],
): Promise<PersonIdOverride[]> {
  const params = lists.map((_, index) => `{ids${index}:Array(Tuple(UInt32, String))}`)
  const rows = await clients.write(async (client, database) => {
    const result = await client.query({
      query: `SELECT project_id, distinct_id, toString(person_id), version
        FROM ${database}.person_distinct_id_overrides FINAL
        WHERE (project_id, distinct_id) IN (SELECT arrayJoin(arrayConcat(${params.join(', ')})))`,
      query_params: Object.fromEntries(lists.map((list, index) => [`ids${index}`, list.map(tupleOf)])),
      use_multipart_params: true, // thousands of ids do not fit a URL
      format: 'JSONCompactEachRow',
    })
    return result.json<OverrideRow>()
  })
  return rows.map(([projectId, distinctId, personId, version]) => ({
    projectId,
    distinctId,
    personId,
    version: Number(version),
  }))
}

function listsOf(ids: readonly IdOfProject[]): IdOfProject[][] {
  const lists: IdOfProject[][] = []
  let charCount = Number.POSITIVE_INFINITY
  for (const id of ids) {
    const chars = charsPerId + id.distinctId.length
    charCount += chars
    if (charCount > listCharsMax) {
      lists.push([])
      charCount = chars
    }
    lists.at(-1)!.push(id)
  }
  return lists
}

function tupleOf({ projectId, distinctId }: IdOfProject): TupleParam {
  return new TupleParam([projectId, distinctId])
}
