// Adds to pending rows of a job what is known of their persons: what is known is written to a table, and a mutation looks it
// up there, which rewrites one column, in place: rows that are erased meanwhile stay erased. Texts of persons are taken
// apart in Node and put together as they are, since the engine would write their numbers its own way.

import { setTimeout as sleep } from 'node:timers/promises'
import { ClickHouseError } from '@clickhouse/client'
import { membersOf } from '#core/json-text.ts'
import { type IdShare, type KnownOf, knownBytesMax } from '#ports/events/event-writer.ts'
import { PortError } from '#ports/port-error.ts'
import type { ClickHouseClient, ClickHouseClients } from '../connection/clickhouse-clients.ts'
import type { RowWritten } from './event-rows.ts'
import { assertOwnPartition, clearKnown, knownTable, partitionsOf } from './import-partitions.ts'
import type { RowInserter } from './insert-rows.ts'
import type { RowBinaryWriter } from './row-binary.ts'

/** What one mutation looks up: it holds it as a whole, twice, for each of the two parts that it rewrites at once. */
const mutationLengthMax = 48 * 1024 * 1024
const idsPerQuestion = 1_000
const pollMs = { first: 20, last: 250 }
const accessDenied = '497'

interface KnownRow {
  readonly distinctId: string
  /** The members that may be added, a line each: JSON.stringify writes no line breaks. */
  readonly lines: string
}

export function countPendingIds(clients: ClickHouseClients, importJobId: number): Promise<number> {
  assertOwnPartition(importJobId)
  return clients.write(async (client, database) => {
    const [row] = await readRows<[number | string]>(
      client,
      `SELECT uniq(distinct_id) FROM ${database}.events_pending WHERE ${hasPerson(importJobId)}`,
    )
    return Number(row![0])
  })
}

export async function addKnownProperties(
  { clients, inserter }: { readonly clients: ClickHouseClients; readonly inserter: RowInserter },
  importJobId: number,
  share: IdShare,
  knownOf: KnownOf,
  signal: AbortSignal,
  lengthMax = mutationLengthMax,
): Promise<void> {
  assertOwnPartition(importJobId)
  const ids = await listIds(clients, importJobId, share)
  let [rows, length]: [KnownRow[], number] = [[], 0]
  const add = async (): Promise<void> => {
    if (rows.length === 0 || signal.aborted) return
    await clear(clients, importJobId)
    await inserter.insert({
      table: knownTable,
      columns: 'import_job_id, distinct_id, known',
      rows,
      write: (to, row) => writeKnown(to, importJobId, row),
    })
    await mutate(clients, importJobId, share, signal)
    await clear(clients, importJobId)
    ;[rows, length] = [[], 0]
  }
  for (let from = 0; from < ids.length && !signal.aborted; from += idsPerQuestion) {
    for (const [distinctId, text] of await knownOf(ids.slice(from, from + idsPerQuestion))) {
      const lines = linesOf(text)
      if (lines !== '') rows.push({ distinctId, lines })
      length += distinctId.length + lines.length
    }
    if (length >= lengthMax) await add()
  }
  await add()
}

function clear(clients: ClickHouseClients, importJobId: number): Promise<void> {
  return clients.write((client, database) => clearKnown(client, database, importJobId))
}

async function listIds(clients: ClickHouseClients, importJobId: number, { index, count }: IdShare): Promise<string[]> {
  const rows = await clients.write((client, database) =>
    readRows<[string]>(
      client,
      `SELECT DISTINCT distinct_id FROM ${database}.events_pending
      WHERE ${hasPerson(importJobId)} AND cityHash64(distinct_id) % ${count} = ${index}`,
    ),
  )
  return rows.map(([distinctId]) => distinctId)
}

function hasPerson(importJobId: number): string {
  return `import_partition = ${importJobId} AND person_mode = 'full'`
}

/** All members, or the shortest ones that fit into the limit, in the order in which they stand. */
function linesOf(propertiesJson: string): string {
  const members = membersOf(propertiesJson)
  if (propertiesJson.length * 3 <= knownBytesMax || Buffer.byteLength(propertiesJson) <= knownBytesMax)
    return members.join('\n')
  let leftBytes = knownBytesMax
  const kept = new Set<string>()
  for (const member of members.toSorted((a, b) => a.length - b.length)) {
    leftBytes -= Buffer.byteLength(member) + 1
    if (leftBytes < 0) break
    kept.add(member)
  }
  return members.filter(member => kept.has(member)).join('\n')
}

function writeKnown(to: RowBinaryWriter, importJobId: number, { distinctId, lines }: KnownRow): RowWritten {
  to.uint32(importJobId)
  to.text(distinctId)
  to.text(lines)
  return 'written'
}

/**
 * Rewrites the rows of the distinct ids that are in the table now. The last share rewrites whole parts, which a DELETE makes
 * the engine do: else a granule, the least that a query reads, would have as many rows as when they were small.
 */
async function mutate(
  clients: ClickHouseClients,
  importJobId: number,
  { index, count }: IdShare,
  signal: AbortSignal,
): Promise<void> {
  await clients.write(async (client, database) => {
    const isTold = (await findMutations(client, database)) !== null
    const ofJob = `FROM ${database}.${knownTable} WHERE import_job_id = ${importJobId}`
    // Both lists by one query, so that they belong together whatever else writes to the table.
    const lists = `(SELECT (groupArray(distinct_id), groupArray(known)) ${ofJob})`
    const known = `transform(distinct_id, tupleElement(${lists} AS lists, 1), tupleElement(lists, 2), '')`
    for (const partition of await partitionsOf(client, database, 'events_pending', importJobId))
      await client.command({
        query: `ALTER TABLE ${database}.events_pending
          UPDATE person_properties = ${withMissing('person_properties', known)} IN PARTITION ID '${partition}'
          WHERE person_mode = 'full' AND distinct_id IN (SELECT distinct_id ${ofJob})
          ${index === count - 1 ? `, DELETE IN PARTITION ID '${partition}' WHERE 0` : ''}`,
        clickhouse_settings: { mutations_sync: isTold ? '0' : '1', allow_nondeterministic_mutations: 1 },
      })
  })
  await waitForMutations(clients, signal)
}

/**
 * SQL of a JSON text with the members of `known` whose keys it lacks. No function here holds a row's text once for each of its
 * members, as one that looks at them one by one would.
 */
function withMissing(text: string, known: string): string {
  // A JSON string, with the colon behind it if it is a key.
  const string = `"(?:[^"\\\\\\\\]|\\\\\\\\.)*":?`
  const keyOf = (quoted: string) =>
    `if(position(${quoted}, '\\\\') = 0, substring(${quoted}, 2, length(${quoted}) - 3),
      JSONExtractString(substring(${quoted}, 1, length(${quoted}) - 1)))`
  const members = `(splitByChar('\\n', ${known}) AS members)`
  const keys = `arrayMap(quoted -> ${keyOf('quoted')}, arrayMap(member -> extract(member, '^${string}'), ${members}))`
  // Of a text that the engine cannot read, keys of objects in it count as well.
  const ownKeys = `(if(isValidJSON(${text}), JSONExtractKeys(${text}),
    arrayMap(quoted -> ${keyOf('quoted')}, arrayFilter(token -> endsWith(token, ':'), extractAll(${text}, '${string}'))))
    AS own_keys)`
  const emptied = `mapFromArrays(${ownKeys}, arrayMap(key -> '', own_keys))`
  const missing = `mapValues(mapUpdate(mapFromArrays(${keys}, members), ${emptied}))`
  const own = `substring(${text}, 2, length(${text}) - 2)`
  return `concat('{', arrayStringConcat(arrayFilter(member -> member != '', arrayConcat([${own}], ${missing})), ','), '}')`
}

/**
 * Waits until no mutation reads the table, also of an earlier worker, or the signal aborts. A server that does not tell has
 * waited itself.
 * @throws PortError when one fails: the server goes on trying.
 */
async function waitForMutations(clients: ClickHouseClients, signal: AbortSignal): Promise<void> {
  for (let waitMs = pollMs.first; !signal.aborted; waitMs = Math.min(2 * waitMs, pollMs.last)) {
    const running = await clients.write((client, database) => findMutations(client, database))
    if (running === null || running.length === 0) return
    const failing = running.find(([reason]) => reason !== '')
    if (failing !== undefined) throw new PortError('event-store', 'unavailable', new Error(failing[0]))
    await sleep(waitMs, undefined, { signal }).catch((cause: unknown) => {
      if (!signal.aborted) throw cause
    })
  }
}

async function findMutations(client: ClickHouseClient, database: string): Promise<[reason: string][] | null> {
  try {
    return await readRows<[string]>(
      client,
      `SELECT latest_fail_reason FROM system.mutations
      WHERE database = '${database}' AND table = 'events_pending' AND NOT is_done AND position(command, '${knownTable}') > 0`,
    )
  } catch (error) {
    if (error instanceof ClickHouseError && error.code === accessDenied) return null
    throw error
  }
}

async function readRows<Row>(client: ClickHouseClient, query: string): Promise<Row[]> {
  const result = await client.query({ query, format: 'JSONCompactEachRow' })
  return result.json<Row>()
}
