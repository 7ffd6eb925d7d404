// Finds what imports wrote to properties after another import, which may have shadowed their values: when that import
// is undone, these values exist only in their events.

import { groupEventNames } from '#core/events/event-names.ts'
import type { ImportedGroupKey, ImportedKey, ImportedWrite, OtherGroupUse } from '#core/imports/other-use.ts'
import { parseJson } from '#core/json.ts'
import type { LaterImports } from '#ports/events/imported-rows.ts'
import type { ClickHouseClient } from '../connection/clickhouse-clients.ts'
import { timeParam } from '../parameters/time-param.ts'

const ofImports = `project_id = {project:UInt32}
  AND if(import_partition = 1, created_at >= ${timeParam('since')}, has({jobs:Array(UInt32)}, import_partition))`

function paramsOf({ projectId, jobIds, sinceMs }: LaterImports) {
  return { project: projectId, jobs: [...jobIds], since: sinceMs }
}

/** `$unset` is a list of keys, or a map of them. */
export function unsetEntries(name: string): string {
  const ofList = `arrayMap(item -> JSONExtractString(item),
    arrayFilter(item -> JSONType(item) = 'String', JSONExtractArrayRaw(properties, '${name}')))`
  return `arrayMap(key -> (key, 'null'),
    if(JSONType(properties, '${name}') = 'Array', ${ofList}, JSONExtractKeys(properties, '${name}')))`
}

/** The key of each event's `first`, requested like any other. */
export const keyOfFirst = ''
const first = `[('${keyOfFirst}', 'null')]`

/** Columns for the rows of `writesSql`. The write that counts is the last column. */
const writeColumns = `import_job_id, op, key,
  if(op IN ('set_once', 'first'), argMin(written, (written.2, written.3)), argMax(written, (written.2, written.3)))`

/** @param maps SQL for the entries of each op. @param columns of the subject. */
function writesSql(maps: Record<string, string>, columns: string, where: string): string {
  const lists = Object.values(maps).map(list => `arrayFilter(entry -> has({keys:Array(String)}, entry.1), ${list})`)
  const byOp = `SELECT import_job_id, ${columns}, op, entries,
      toUnixTimestamp64Milli(timestamp) AS at, toString(uuid) AS id
    FROM events
    ARRAY JOIN ['${Object.keys(maps).join("', '")}'] AS op, [${lists.join(', ')}] AS entries
    ${where}`
  return `SELECT *, entry.1 AS key, (entry.2, at, id) AS written FROM (${byOp}) ARRAY JOIN entries AS entry`
}

type WriteRow = [
  importJobId: number | string,
  op: ImportedWrite['op'],
  key: string,
  write: [valueJson: string, timestampMs: number | string, uuid: string],
]

function toImportedWrite([importJobId, op, key, [valueJson, timestampMs, uuid]]: WriteRow): ImportedWrite {
  const value = parseJson(valueJson)
  return { importJobId: Number(importJobId), op, key, value, timestampMs: Number(timestampMs), uuid }
}

export async function importedKeys(
  client: ClickHouseClient,
  imports: LaterImports,
  asked: { readonly ids: string[]; readonly keys: string[] },
  signal: AbortSignal,
): Promise<ImportedKey[]> {
  const maps = {
    set: "JSONExtractKeysAndValuesRaw(properties, '$set')",
    set_once: "JSONExtractKeysAndValuesRaw(properties, '$set_once')",
    unset: unsetEntries('$unset'),
    first,
  }
  const where = `PREWHERE ${ofImports} WHERE distinct_id IN {ids:Array(String)} AND person_mode = 'full'`
  const result = await client.query({
    query: `SELECT distinct_id, ${writeColumns}
      FROM (${writesSql(maps, 'distinct_id', where)})
      GROUP BY distinct_id, import_job_id, op, key`,
    query_params: { ...paramsOf(imports), ...asked },
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  const rows = await result.json<[string, ...WriteRow]>()
  return rows.map(([distinctId, ...write]) => ({ distinctId, ...toImportedWrite(write) }))
}

/** @param type SQL for the name of the group's type, `groupKey` for its key. */
export async function importedGroupKeys(
  client: ClickHouseClient,
  imports: LaterImports,
  asked: { readonly groups: readonly Pick<OtherGroupUse, 'typeName' | 'key'>[]; readonly keys: string[] },
  { type, groupKey }: { readonly type: string; readonly groupKey: string },
  signal: AbortSignal,
): Promise<ImportedGroupKey[]> {
  const set = "JSONExtractKeysAndValuesRaw(properties, '$group_set')"
  const maps = { set, unset: unsetEntries('$group_unset'), first }
  const where = `PREWHERE ${ofImports} AND event IN {events:Array(String)}
    WHERE (type, group_key) IN arrayZip({types:Array(String)}, {names:Array(String)})`
  const columns = `${type} AS type, ${groupKey} AS group_key`
  const result = await client.query({
    query: `SELECT type, group_key, ${writeColumns}
      FROM (${writesSql(maps, columns, where)})
      GROUP BY type, group_key, import_job_id, op, key`,
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
  const rows = await result.json<[string, string, ...WriteRow]>()
  return rows.map(([typeName, group, ...write]) => ({ typeName, groupKey: group, ...toImportedWrite(write) }))
}
