// Counts the events of a batch that are already stored. Usually no event is stored yet, since most batches are sent once.
// So a first query looks only for the uuids: looking for whole identities takes the engine fifteen times as long.

import type { BatchSummary } from '#core/events/batch-summary.ts'
import { uuidTextLength } from '#core/events/uuid.ts'
import type { BatchIdentities } from '#ports/events/imported-rows.ts'
import { type ClickHouseClient, readRows } from '../connection/clickhouse-clients.ts'
import { encodeIdentities } from '../parameters/encoded-lists.ts'
import { splitIntoLists } from '../parameters/split-into-lists.ts'

const tables = ['events', 'events_pending'] as const
/** Batches with more days or names are looked up by identity at once: looking for uuids would read more of the table. */
const daysMax = 2
const namesMax = 50
const uuidsPerField = 3_000
const charsPerUuid = uuidTextLength + 1

/** @param batch at least one event. */
export async function countStoredEvents(
  client: ClickHouseClient,
  projectId: number,
  batch: BatchIdentities,
  signal: AbortSignal,
): Promise<number> {
  const asked = encodeUuids(projectId, batch.summary)
  if (asked !== null && !(await isAnyStored(client, asked, signal))) return 0
  const identities = await batch.listIdentities()
  const { prewhere, where, params } = encodeIdentities(identities.map(identity => ({ ...identity, projectId })))
  const source = tables.map(
    table => `SELECT toDate32(timestamp) AS day, event, distinct_id, uuid FROM ${table}
      PREWHERE ${prewhere} WHERE ${where}`,
  )
  return queryCount(
    client,
    `SELECT count() FROM (SELECT DISTINCT day, event, distinct_id, uuid FROM (${source.join(' UNION ALL ')}))`,
    params,
    signal,
  )
}

interface AskedUuids {
  readonly prewhere: string
  readonly where: string
  readonly params: Record<string, unknown>
}

/** @returns conditions that find stored rows with these uuids; null when the sort key would exclude too few rows. */
function encodeUuids(projectId: number, { days, names, distinctIds, uuids }: BatchSummary): AskedUuids | null {
  if (days.length > daysMax || names.length > namesMax) return null
  const ids = (distinctIds ?? []).map(id => id.toWellFormed())
  const idLists = splitIntoLists(ids, text => text.length)
  const idsIn = idLists.map((_, index) => `distinct_id IN {distinctIds${index}:Array(String)}`)
  const uuidLists = splitUuids(uuids)
  const lists = uuidLists.map((_, index) => `splitByChar(',', materialize({uuids${index}:String}))`)
  const all = lists.length === 1 ? lists[0]! : `arrayConcat(${lists.join(', ')})`
  return {
    prewhere: `uuid IN (SELECT toUUID(arrayJoin(${all})))`,
    where: [
      'project_id = {project:UInt32}',
      'toDate32(timestamp) IN (SELECT toDate32(arrayJoin({days:Array(Int32)})))',
      'event IN {names:Array(String)}',
      ...(idsIn.length === 0 ? [] : [`(${idsIn.join(' OR ')})`]),
    ].join(' AND '),
    params: {
      ...{ project: projectId, days: [...days], names: names.map(name => name.toWellFormed()) },
      ...Object.fromEntries(idLists.map((list, index) => [`distinctIds${index}`, list])),
      ...Object.fromEntries(uuidLists.map((list, index) => [`uuids${index}`, list])),
    },
  }
}

function splitUuids(uuids: string): string[] {
  const lists: string[] = []
  const charsMax = uuidsPerField * charsPerUuid
  for (let from = 0; from < uuids.length; from += charsMax) lists.push(uuids.slice(from, from + charsMax - 1))
  return lists
}

/**
 * Whether any stored event has one of the uuids, one of the days and one of the names, even if it is not an event of the
 * batch.
 */
async function isAnyStored(
  client: ClickHouseClient,
  { prewhere, where, params }: AskedUuids,
  signal: AbortSignal,
): Promise<boolean> {
  const source = tables.map(table => `SELECT 1 FROM ${table} PREWHERE ${prewhere} WHERE ${where}`)
  return (await queryCount(client, `SELECT count() FROM (${source.join(' UNION ALL ')})`, params, signal)) > 0
}

async function queryCount(
  client: ClickHouseClient,
  query: string,
  query_params: Record<string, unknown>,
  signal: AbortSignal,
): Promise<number> {
  const [row] = await readRows<[number | string]>(client, signal, {
    query,
    query_params,
  })
  return Number(row![0])
}
