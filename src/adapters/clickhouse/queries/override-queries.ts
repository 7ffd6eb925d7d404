// Finds the person to whom a distinct id's earlier events belong now, thousands of ids in one query. A worker runs this
// query at its start, before it inserts, over the connection of the inserts, so that queries of API clients do not delay
// it.

import { TupleParam } from '@clickhouse/client'
import type { PersonIdOverride } from '#core/events/stored-event.ts'
import { type ClickHouseClients, readRows } from '../connection/clickhouse-clients.ts'
import { versionsPerErasure } from '../parameters/override-version.ts'
import { splitIntoLists } from '../parameters/split-into-lists.ts'

export interface ProjectDistinctId {
  readonly projectId: number
  readonly distinctId: string
}

/** The characters that an id takes in a field in addition to its text. */
const charsPerId = 20
/** 4 MB. */
const listsPerQueryMax = 100

type OverrideRow = [projectId: number, distinctId: string, personId: string, version: number | string]

/** See `EventWriter.findOverrides`. */
export async function findOverrides(
  clients: Pick<ClickHouseClients, 'write'>,
  ids: readonly ProjectDistinctId[],
): Promise<PersonIdOverride[]> {
  const lists = splitIntoLists(ids, ({ distinctId }) => charsPerId + distinctId.length)
  const found: PersonIdOverride[] = []
  for (let from = 0; from < lists.length; from += listsPerQueryMax)
    found.push(...(await findOverridesIn(clients, lists.slice(from, from + listsPerQueryMax))))
  return found
}

async function findOverridesIn(
  clients: Pick<ClickHouseClients, 'write'>,
  lists: readonly (readonly ProjectDistinctId[])[],
): Promise<PersonIdOverride[]> {
  const params = lists.map((_, index) => `{ids${index}:Array(Tuple(UInt32, String))}`)
  const rows = await clients.write(async (client, database) => {
    return readRows<OverrideRow>(client, undefined, {
      query: `SELECT project_id, distinct_id, toString(person_id), version
        FROM ${database}.person_distinct_id_overrides FINAL
        WHERE (project_id, distinct_id) IN (SELECT arrayJoin(arrayConcat(${params.join(', ')})))`,
      query_params: Object.fromEntries(lists.map((list, index) => [`ids${index}`, list.map(toTuple)])),
    })
  })
  return rows.map(([projectId, distinctId, personId, version]) => ({
    projectId,
    distinctId,
    personId,
    version: Number(version) % versionsPerErasure,
  }))
}

function toTuple({ projectId, distinctId }: ProjectDistinctId): TupleParam {
  return new TupleParam([projectId, distinctId])
}
