// Finds the times at which events that are sent again were first charged, for thousands of events in one query. The worker
// asks for these times before each insert, so the query must be cheap. An event is rarely stored already; if it is not,
// only the uuids of a few granules are read. It uses the connection of the inserts, so that queries of API clients, however
// many, do not delay the worker.

import { ClickHouseError } from '@clickhouse/client'
import { isStorableTime } from '#core/events/storable-time.ts'
import { buildIdentityKey, type EventIdentity } from '#core/events/stored-event.ts'
import { isUuid } from '#core/events/uuid.ts'
import { dayMs } from '#core/time.ts'
import { PortError } from '#ports/port-error.ts'
import { type ClickHouseClient, type ClickHouseClients, readRows } from '../connection/clickhouse-clients.ts'
import { encodeIdentities } from '../parameters/encoded-lists.ts'
import { splitIntoLists } from '../parameters/split-into-lists.ts'

/** The longest name or distinct id that a captured event can have. */
const textCharsMax = 1000
/** The characters that an identity takes in a query in addition to its texts. */
const charsPerIdentity = 60
/** The most characters of one query: three times as many as 10,000 ordinary identities need. */
const queryCharsMax = 4_000_000
/** A query that reaches the time limit is halved if it has more identities than this. */
const halvedAbove = 300
const querySecondsMax = 8

/** See `EventWriter.findChargedTimes`. */
export async function findChargedTimes(
  clients: Pick<ClickHouseClients, 'write'>,
  identities: readonly EventIdentity[],
): Promise<(number | null)[]> {
  const times = new Map<string, number>()
  const countChars = ({ event, distinctId }: EventIdentity) => charsPerIdentity + event.length + distinctId.length
  for (const some of splitIntoLists(identities.filter(isStorable), countChars, queryCharsMax))
    await addChargedTimes(clients, some, times)
  return identities.map(identity => times.get(buildIdentityKey(identity)) ?? null)
}

async function addChargedTimes(
  clients: Pick<ClickHouseClients, 'write'>,
  identities: readonly EventIdentity[],
  times: Map<string, number>,
): Promise<void> {
  try {
    const rows = await clients.write((client, database) => queryChargedTimes(client, database, identities))
    for (const row of rows) times.set(buildIdentityKey(toIdentity(row)), Number(row[5]))
  } catch (error) {
    // Only a timeout that the server itself reports means a too large query: a server that does not answer at all is down.
    const tooMuch = error instanceof PortError && error.code === 'timeout' && error.cause instanceof ClickHouseError
    if (!tooMuch || identities.length <= halvedAbove) throw error
    const middle = identities.length >> 1
    await addChargedTimes(clients, identities.slice(0, middle), times)
    await addChargedTimes(clients, identities.slice(middle), times)
  }
}

type ChargedRow = [
  ...[projectId: number, day: number, event: string, distinctId: string, uuid: string],
  chargedAtMs: number | string,
]

/**
 * The sort key finds the granules, the uuid selects which of their rows to read in full. `FINAL` would read every column of
 * the key first; instead, this query takes the copy with the highest version, which is the copy that other reads see.
 */
async function queryChargedTimes(
  client: ClickHouseClient,
  database: string,
  identities: readonly EventIdentity[],
): Promise<ChargedRow[]> {
  const { prewhere, where, params } = encodeIdentities(identities)
  return readRows<ChargedRow>(client, undefined, {
    query: `SELECT project_id, toInt32(toDate32(timestamp)) AS day, event, distinct_id, toString(uuid),
        toUnixTimestamp64Milli(argMax(charged_at, row_version))
      FROM ${database}.events
      PREWHERE ${prewhere}
      WHERE ${where}
        AND import_job_id = 0
      GROUP BY project_id, day, event, distinct_id, uuid`,
    query_params: params,
    clickhouse_settings: { max_execution_time: querySecondsMax },
  })
}

/** Whether a row can have this identity. All others are left out of the query, since the server would refuse it. */
function isStorable({ uuid, timestampMs, event, distinctId }: EventIdentity): boolean {
  return (
    isUuid(uuid) && isStorableTime(timestampMs) && event.length <= textCharsMax && distinctId.length <= textCharsMax
  )
}

function toIdentity([projectId, day, event, distinctId, uuid]: ChargedRow): EventIdentity {
  return { projectId, timestampMs: day * dayMs, event, distinctId, uuid }
}
