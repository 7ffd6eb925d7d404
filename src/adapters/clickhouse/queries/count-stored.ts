// How many events of a batch the store has already. A batch that is sent for the first time has none of them, so that is
// asked first, by the uuids alone: to look for whole identities takes the engine fifteen times as long.

import type { EventIdentity } from '#core/events/stored-event.ts'
import { dayMs } from '#core/time.ts'
import type { ClickHouseClient } from '../connection/clickhouse-clients.ts'
import { fieldLists } from '../parameters/field-lists.ts'
import { askedIdentities } from '../parameters/identity-lists.ts'

const tables = ['events', 'events_pending'] as const
/** Beyond these, looking for uuids would read more of the table than looking for identities does. */
const daysMax = 2
const namesMax = 50
/** So many distinct ids are named, to read less; more would hardly leave anything out. */
const idsMax = 1_000
const uuidsPerField = 3_000

/** @param identities of one project, at least one, each once. */
export async function countStored(
  client: ClickHouseClient,
  identities: readonly EventIdentity[],
  signal: AbortSignal,
): Promise<number> {
  const asked = askedUuids(identities)
  if (asked !== null && !(await isAnyOf(client, asked, signal))) return 0
  const { prewhere, where, params } = askedIdentities(identities)
  const source = tables.map(
    table => `SELECT toDate32(timestamp) AS day, event, distinct_id, uuid FROM ${table}
      PREWHERE ${prewhere} WHERE ${where}`,
  )
  return countOf(
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

/** @returns null where the sort key would leave out too little. */
function askedUuids(identities: readonly EventIdentity[]): AskedUuids | null {
  const days = new Set(identities.map(({ timestampMs }) => Math.floor(timestampMs / dayMs)))
  const names = new Set(identities.map(({ event }) => event.toWellFormed()))
  if (days.size > daysMax || names.size > namesMax) return null
  const ids = new Set(identities.map(({ distinctId }) => distinctId.toWellFormed()))
  const idLists = ids.size > idsMax ? [] : fieldLists(ids, text => text.length)
  const idsIn = idLists.map((_, index) => `distinct_id IN {distinctIds${index}:Array(String)}`)
  const uuidLists = fieldLists(identities, () => 1, uuidsPerField)
  const uuids = uuidLists.map((_, index) => `splitByChar(',', materialize({uuids${index}:String}))`)
  const all = uuids.length === 1 ? uuids[0]! : `arrayConcat(${uuids.join(', ')})`
  return {
    prewhere: `uuid IN (SELECT toUUID(arrayJoin(${all})))`,
    where: [
      'project_id = {project:UInt32}',
      'toDate32(timestamp) IN (SELECT toDate32(arrayJoin({days:Array(Int32)})))',
      'event IN {names:Array(String)}',
      ...(idsIn.length === 0 ? [] : [`(${idsIn.join(' OR ')})`]),
    ].join(' AND '),
    params: {
      ...{ project: identities[0]!.projectId, days: [...days], names: [...names] },
      ...Object.fromEntries(idLists.map((list, index) => [`distinctIds${index}`, list])),
      ...Object.fromEntries(uuidLists.map((list, index) => [`uuids${index}`, list.map(({ uuid }) => uuid).join(',')])),
    },
  }
}

/** Whether the store may have one of them, by its uuid, day and name. */
async function isAnyOf(
  client: ClickHouseClient,
  { prewhere, where, params }: AskedUuids,
  signal: AbortSignal,
): Promise<boolean> {
  const source = tables.map(table => `SELECT 1 FROM ${table} PREWHERE ${prewhere} WHERE ${where}`)
  return (await countOf(client, `SELECT count() FROM (${source.join(' UNION ALL ')})`, params, signal)) > 0
}

async function countOf(
  client: ClickHouseClient,
  query: string,
  query_params: Record<string, unknown>,
  signal: AbortSignal,
): Promise<number> {
  const result = await client.query({
    ...{ query, query_params, use_multipart_params: true, format: 'JSONCompactEachRow', abort_signal: signal },
  })
  const [row] = await result.json<[number | string]>()
  return Number(row![0])
}
