// Which properties imports write that came after another one: their values may have been outranked by it, and are nowhere
// once it is undone.

import { groupEventNames } from '#core/events/event-names.ts'
import type { ImportedGroupKey, ImportedKey, OtherGroupUse } from '#core/imports/other-use.ts'
import type { LaterImports } from '#ports/events/imported-rows.ts'
import type { ClickHouseClient } from '../connection/clickhouse-clients.ts'
import { timeParam } from '../parameters/time-param.ts'

const ofImports = `project_id = {project:UInt32}
  AND if(import_partition = 1, created_at >= ${timeParam('since')}, has({jobs:Array(UInt32)}, import_partition))`

function paramsOf({ projectId, jobIds, sinceMs }: LaterImports) {
  return { project: projectId, jobs: [...jobIds], since: sinceMs }
}

export async function importedKeys(
  client: ClickHouseClient,
  imports: LaterImports,
  asked: { readonly ids: string[]; readonly keys: string[] },
  signal: AbortSignal,
): Promise<ImportedKey[]> {
  const result = await client.query({
    query: `SELECT DISTINCT distinct_id, arrayJoin(arrayFilter(key -> has({keys:Array(String)}, key),
        arrayConcat(JSONExtractKeys(properties, '$set'), JSONExtractKeys(properties, '$set_once'))))
      FROM events
      PREWHERE ${ofImports}
      WHERE distinct_id IN {ids:Array(String)} AND person_mode = 'full'`,
    query_params: { ...paramsOf(imports), ...asked },
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  return (await result.json<[string, string]>()).map(([distinctId, key]) => ({ distinctId, key }))
}

/** @param type SQL for the name of the group's type, `groupKey` for its key. */
export async function importedGroupKeys(
  client: ClickHouseClient,
  imports: LaterImports,
  asked: { readonly groups: readonly Pick<OtherGroupUse, 'typeName' | 'key'>[]; readonly keys: string[] },
  { type, groupKey }: { readonly type: string; readonly groupKey: string },
  signal: AbortSignal,
): Promise<ImportedGroupKey[]> {
  const result = await client.query({
    query: `SELECT DISTINCT ${type} AS type, ${groupKey} AS group_key,
        arrayJoin(arrayFilter(key -> has({keys:Array(String)}, key), JSONExtractKeys(properties, '$group_set')))
      FROM events
      PREWHERE ${ofImports} AND event IN {events:Array(String)}
      WHERE (type, group_key) IN arrayZip({types:Array(String)}, {names:Array(String)})`,
    query_params: {
      ...paramsOf(imports),
      events: [...groupEventNames],
      types: asked.groups.map(({ typeName }) => typeName),
      names: asked.groups.map(({ key }) => key),
      keys: asked.keys,
    },
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const rows = await result.json<[string, string, string]>()
  return rows.map(([typeName, group, key]) => ({ typeName, groupKey: group, key }))
}
