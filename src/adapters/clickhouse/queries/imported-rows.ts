// The rows of one import job, which has separate partitions in `events_pending` and, once published, in `events`; while
// it is being published, its rows are in both tables.

import type { Ask } from '#adapters/clickhouse/connection/query-queue.ts'
import { groupEventNames, mergeEventNames } from '#core/events/event-names.ts'
import type { LaterWrite, OtherGroupUse, OtherUse } from '#core/imports/other-use.ts'
import { parseJson } from '#core/json.ts'
import { filteredProperties } from '#core/processing/properties/mapped-properties.ts'
import type { EventView } from '#ports/events/event-queries.ts'
import { type ImportedRows, laterWriteCountMax, otherUseCountMax } from '#ports/events/imported-rows.ts'
import type { ClickHouseClient, ClickHouseClients } from '../connection/clickhouse-clients.ts'
import { splitIntoLists } from '../parameters/field-lists.ts'
import { countTextChars, queryListByList, splitItemsAndKeys } from '../parameters/list-by-list.ts'
import { timeParam } from '../parameters/time-param.ts'
import { countStored } from './count-stored.ts'
import { type EventRow, storedColumns, toEventView, viewColumns } from './event-rows.ts'
import { countRows, type JobParams, jobCondition, listCounts } from './imported-counts.ts'
import { importedGroupKeys, importedKeys, keyOfFirst, unsetEntries } from './imported-keys.ts'

/**
 * @param ask queues user queries per project.
 * @param askStored queues look-ups of batches per project. The worker's own queries use neither queue.
 */
export function createImportedRows(
  clients: Pick<ClickHouseClients, 'read'>,
  { ask, askStored }: { readonly ask: Ask; readonly askStored: Ask },
): ImportedRows {
  return {
    countImportedRows: (projectId, importJobId, signal) =>
      countRows(query => ask(projectId, signal, query), { project: projectId, job: importJobId }),
    listImportedCounts: (asked, signal) => listCounts(query => ask(asked.projectId, signal, query), asked),
    countPendingRows: (projectId, importJobId) =>
      clients.read((client, signal) => countPending(client, { project: projectId, job: importJobId }, signal)),
    findImportedRows: (projectId, importJobId, uuids, signal) =>
      ask(projectId, signal, (client, either) =>
        findRows(client, { project: projectId, job: importJobId }, uuids, either),
      ),
    countStored: async (projectId, batch) =>
      batch.summary.count === 0
        ? 0
        : askStored(projectId, undefined, (client, signal) => countStored(client, projectId, batch, signal)),
    findUsedIds: (projectId, importJobId, distinctIds) =>
      queryListByList(splitIntoLists(distinctIds, countTextChars), ids =>
        clients.read((client, signal) => usedIds(client, projectId, importJobId, ids, signal)),
      ),
    findOtherUses: (projectId, importJobId, distinctIds, sinceMs) =>
      queryListByList(
        splitIntoLists(distinctIds, countTextChars),
        ids =>
          clients.read((client, signal) =>
            otherUses(client, { project: projectId, job: importJobId, since: sinceMs, ids }, signal),
          ),
        ({ distinctId, otherId }) => distinctId.length + (otherId?.length ?? 0),
      ),
    findLaterWrites: (projectId, distinctIds, keys, sinceMs) =>
      queryListByList(
        splitItemsAndKeys(distinctIds, countTextChars, keys),
        asked =>
          clients.read((client, signal) =>
            laterWrites(client, { project: projectId, since: sinceMs, ids: asked.items, keys: asked.keys }, signal),
          ),
        countWriteChars,
      ),
    findImportedKeys: (imports, distinctIds, keys) =>
      queryListByList(
        splitItemsAndKeys(distinctIds, countTextChars, [...keys, keyOfFirst]),
        asked =>
          clients.read((client, signal) =>
            importedKeys(client, imports, { ids: asked.items, keys: asked.keys }, signal),
          ),
        ({ distinctId, ...write }) => distinctId.length + countWriteChars(write),
      ),
    findImportedGroupKeys: (imports, groups, keys) =>
      queryListByList(
        splitItemsAndKeys(groups, countGroupChars, [...keys, keyOfFirst]),
        asked =>
          clients.read((client, signal) =>
            importedGroupKeys(client, imports, { groups: asked.items, keys: asked.keys }, groupColumns, signal),
          ),
        ({ groupKey, ...write }) => groupKey.length + countWriteChars(write),
      ),
    findOtherGroupUses: (projectId, importJobId, groups) =>
      queryListByList(splitIntoLists(groups, countGroupChars), some =>
        clients.read((client, signal) => findOtherGroups(client, projectId, importJobId, some, signal)),
      ),
    listJobSubjects: () => Promise.reject(new Error('not yet')),
    readHistory: () => Promise.reject(new Error('not yet')),
    hasRowsOfGroupType: (projectId, importJobId, typeIndex) =>
      clients.read((client, signal) => hasRowsOfType(client, { projectId, importJobId, typeIndex }, signal)),
  }
}

function countWriteChars({ key, value }: Pick<LaterWrite, 'key' | 'value'>): number {
  return countTextChars(key) + JSON.stringify(value).length
}

function countGroupChars({ typeName, key }: Pick<OtherGroupUse, 'typeName' | 'key'>): number {
  return typeName.length + key.length + 8
}

/** FINAL reads in the order of the key, so that it needs little memory for any number of rows. */
async function countPending(client: ClickHouseClient, query_params: JobParams, signal: AbortSignal): Promise<number> {
  const result = await client.query({
    query: `SELECT count() FROM events_pending FINAL ${jobCondition}`,
    ...{ query_params, format: 'JSONCompactEachRow', abort_signal: signal },
  })
  const [row] = await result.json<[number | string]>()
  return Number(row![0])
}

async function findRows(
  client: ClickHouseClient,
  jobParams: JobParams,
  uuids: readonly string[],
  signal: AbortSignal,
): Promise<EventView[]> {
  if (uuids.length === 0) return []
  const found = new Map<string, EventView>()
  for (const table of ['events_pending', 'events']) {
    const result = await client.query({
      query: `SELECT ${viewColumns} FROM (
          SELECT ${storedColumns}, person_id AS person FROM ${table} FINAL
          ${jobCondition} AND uuid IN {uuids:Array(UUID)})`,
      query_params: { ...jobParams, uuids: [...uuids] },
      use_multipart_params: true,
      format: 'JSONCompactEachRow',
      abort_signal: signal,
    })
    for (const row of await result.json<EventRow>()) {
      const view = toEventView(row)
      // While the job is published, a row may be found in both tables; two rows with one uuid may differ in the rest.
      found.set(JSON.stringify([view.uuid, view.event, view.distinctId, view.timestampMs]), view)
    }
  }
  return [...found.values()]
}

async function usedIds(
  client: ClickHouseClient,
  project: number,
  job: number,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const result = await client.query({
    query: `SELECT DISTINCT distinct_id FROM events
      PREWHERE project_id = {project:UInt32} AND import_job_id != {job:UInt32}
      WHERE distinct_id IN {ids:Array(String)} AND person_mode != 'propertyless'`,
    query_params: { project, job, ids: [...ids] },
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  return (await result.json<[string]>()).map(([id]) => id)
}

// The parser of this engine refuses properties with a number of 30 digits anywhere in them.
function textPropertySql(key: string): string {
  return `if(isValidJSON(properties), JSONExtractString(properties, '${key}'),
    extract(properties, '"[$]?${key.replace('$', '')}"\\\\s*:\\\\s*"([^"\\\\\\\\]*)"'))`
}

/** Text, or a number as it was written. */
function scalarPropertySql(key: string): string {
  return `if(JSONType(properties, '${key}') = 'String' OR NOT isValidJSON(properties), ${textPropertySql(key)},
    JSONExtractRaw(properties, '${key}'))`
}

const groupColumns = { type: textPropertySql('$group_type'), groupKey: scalarPropertySql('$group_key') }

const linkedId = `multiIf(event = '$identify', ${textPropertySql('$anon_distinct_id')},
  event IN ('$create_alias', '$merge_dangerously'), ${textPropertySql('alias')}, '')`

type UseRow = [importJobId: number | string, distinctId: string, otherId: string, isLater: number, writes: number]

async function otherUses(
  client: ClickHouseClient,
  query_params: { project: number; job: number; since: number; ids: readonly string[] },
  signal: AbortSignal,
): Promise<OtherUse[]> {
  const result = await client.query({
    query: `SELECT if(import_partition > 1, import_job_id, 0) AS job, distinct_id, ${linkedId} AS other,
        max(created_at >= ${timeParam('since')}) AS is_later,
        max((import_partition > 1 OR created_at >= ${timeParam('since')})
          AND match(properties, '"[$](set|set_once|unset)"\\\\s*:\\\\s*[\\\\[{]\\\\s*"')) AS writes
      FROM events
      PREWHERE project_id = {project:UInt32} AND import_job_id != {job:UInt64}
      WHERE person_mode != 'propertyless'
        AND (distinct_id IN {ids:Array(String)}
          OR (event IN {links:Array(String)} AND (import_partition > 1 OR created_at >= ${timeParam('since')})
            AND other IN {ids:Array(String)}))
      GROUP BY job, distinct_id, other
      ORDER BY has({ids:Array(String)}, other) AND has({ids:Array(String)}, distinct_id) DESC, is_later DESC, writes DESC
      LIMIT ${otherUseCountMax} BY if(has({ids:Array(String)}, distinct_id), distinct_id, other)`,
    query_params: { ...query_params, ids: [...query_params.ids], links: [...mergeEventNames] },
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  return (await result.json<UseRow>()).map(([importJobId, distinctId, otherId, isLater, writes]) => ({
    importJobId: Number(importJobId),
    distinctId,
    otherId: otherId === '' ? null : otherId,
    isLater: isLater === 1,
    writes: writes === 1,
  }))
}

type WriteRow = [
  distinctId: string,
  op: LaterWrite['op'],
  key: string,
  valueJson: string,
  written: [storedAtMs: number | string, timestampMs: number | string, uuid: string],
]

async function laterWrites(
  client: ClickHouseClient,
  query_params: { project: number; since: number; ids: string[]; keys: string[] },
  signal: AbortSignal,
): Promise<LaterWrite[]> {
  const entriesOf = (name: string) => `JSONExtractKeysAndValuesRaw(properties, '${name}')`
  const maps = [entriesOf('$set'), entriesOf('$set_once'), unsetEntries('$unset')].map(
    entries => `arrayFilter(entry -> has({keys:Array(String)}, entry.1), ${entries})`,
  )
  const result = await client.query({
    query: `SELECT distinct_id, op, entry.1 AS key, entry.2 AS value,
        if(op = 'unset', max(written), min(written)) AS decisive
      FROM (
        SELECT distinct_id, created_at, op, entries,
          (toUnixTimestamp64Milli(created_at), toUnixTimestamp64Milli(timestamp), toString(uuid)) AS written
        FROM events
        ARRAY JOIN ['set', 'set_once', 'unset'] AS op, [${maps.join(', ')}] AS entries
        PREWHERE project_id = {project:UInt32} AND import_partition = 0 AND created_at >= ${timeParam('since')}
        WHERE distinct_id IN {ids:Array(String)} AND person_mode = 'full' AND event != '$exception'
      )
      ARRAY JOIN entries AS entry
      GROUP BY distinct_id, op, key, value
      ORDER BY if(op = 'set' AND NOT has({filtered:Array(String)}, key),
        -toFloat64(max(created_at)), toFloat64(min(created_at))), decisive, indexOf(['set', 'set_once', 'unset'], op)
      LIMIT ${laterWriteCountMax} BY distinct_id, op, key`,
    query_params: { ...query_params, filtered: [...filteredProperties] },
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  return (await result.json<WriteRow>()).map(([distinctId, op, key, valueJson, written]) => {
    const value = parseJson(valueJson)
    const [storedAtMs, timestampMs, uuid] = written
    return { distinctId, op, key, value, storedAtMs: Number(storedAtMs), timestampMs: Number(timestampMs), uuid }
  })
}

async function findOtherGroups(
  client: ClickHouseClient,
  project: number,
  job: number,
  groups: readonly Pick<OtherGroupUse, 'typeName' | 'key'>[],
  signal: AbortSignal,
): Promise<OtherGroupUse[]> {
  const result = await client.query({
    query: `SELECT DISTINCT if(import_partition > 1, import_job_id, 0) AS job, ${groupColumns.type} AS type,
        ${groupColumns.groupKey} AS key
      FROM events
      PREWHERE project_id = {project:UInt32} AND import_job_id != {job:UInt64}
        AND event IN {events:Array(String)}
      WHERE (type, key) IN arrayZip({types:Array(String)}, {keys:Array(String)})`,
    query_params: {
      project,
      job,
      events: [...groupEventNames],
      types: groups.map(({ typeName }) => typeName),
      keys: groups.map(({ key }) => key),
    },
    use_multipart_params: true,
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  return (await result.json<[number | string, string, string]>()).map(([importJobId, typeName, key]) => {
    return { importJobId: Number(importJobId), typeName, key }
  })
}

async function hasRowsOfType(
  client: ClickHouseClient,
  { projectId, importJobId, typeIndex }: { projectId: number; importJobId: number; typeIndex: number },
  signal: AbortSignal,
): Promise<boolean> {
  const result = await client.query({
    query: ['events', 'events_pending']
      .map(
        table => `SELECT 1 FROM ${table}
      PREWHERE project_id = {project:UInt32} AND import_job_id != {job:UInt32}
      WHERE "$group_${Number(typeIndex)}" != '' LIMIT 1`,
      )
      .join(' UNION ALL '),
    query_params: { project: projectId, job: importJobId },
    format: 'JSONCompactEachRow',
    abort_signal: signal,
  })
  return (await result.json<[number]>()).length > 0
}
