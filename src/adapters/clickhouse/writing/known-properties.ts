// Adds known properties of persons to the pending rows of an import job. The properties are written to a separate table, in
// which a mutation of the pending rows looks them up. The mutation rewrites one column in place, so rows that are erased at
// the same time stay erased. Node splits the JSON of persons into members, which SQL joins unchanged: the engine would
// rewrite their numbers.
//
// Each call is an attempt with a unique number, and reads and clears its own rows of the table. Before that, it clears the
// rows of all earlier attempts, so that the mutations of these find nothing to add, and waits for those mutations to end.

import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { computeBackOffMs } from '#core/back-off.ts'
import { listMemberTexts } from '#core/json-text.ts'
import { type GetKnownProperties, type IdShare, knownBytesMax } from '#ports/events/event-writer.ts'
import { PortError } from '#ports/port-error.ts'
import { type ClickHouseClients, longReadSettings, readRows } from '../connection/clickhouse-clients.ts'
import { isAccessDenied } from '../connection/clickhouse-errors.ts'
import type { RowWriteResult } from './event-rows.ts'
import { assertOwnPartition, dropJobPartitions, knownTable, listPartitions } from './import-partitions.ts'
import type { RowInserter } from './insert-rows.ts'
import type { RowBinaryWriter } from './row-binary.ts'

/**
 * The most bytes of properties that one mutation looks up. It holds them in memory twice for each of the two parts that it
 * rewrites at once.
 */
const mutationBytesMax = 48 * 1024 * 1024
const idsPerQuestion = 1_000
const pollWaits = { firstMs: 20, longestMs: 250 }
const grantNeeded =
  'the user of CLICKHOUSE_URL may not read system.mutations, which publishing an import needs: GRANT SELECT ON system.mutations'

interface Attempt {
  readonly importJobId: number
  readonly number: number
}

interface KnownRow {
  readonly distinctId: string
  /** The members that may be added, each on its own line: JSON.stringify writes no line breaks. */
  readonly lines: string
}

export function countPendingDistinctIds(clients: ClickHouseClients, importJobId: number): Promise<number> {
  assertOwnPartition(importJobId)
  return clients.write(async (client, database) => {
    const [row] = await readRows<[number | string]>(client, undefined, {
      query: `SELECT uniq(distinct_id) FROM ${database}.events_pending WHERE ${hasPersonSql(importJobId)}`,
      clickhouse_settings: longReadSettings,
    })
    return Number(row![0])
  })
}

export async function addKnownProperties(
  { clients, inserter }: { readonly clients: ClickHouseClients; readonly inserter: RowInserter },
  importJobId: number,
  share: IdShare,
  knownOf: GetKnownProperties,
  signal: AbortSignal,
  bytesMax = mutationBytesMax,
): Promise<void> {
  assertOwnPartition(importJobId)
  await clients.write((client, database) => dropJobPartitions(client, database, knownTable, importJobId))
  await waitForMutations(clients, importJobId, signal)
  const attempt = { importJobId, number: randomInt(2 ** 47) }
  const ids = await listIds(clients, importJobId, share)
  let [rows, bytes]: [KnownRow[], number] = [[], 0]
  const insertRows = async (): Promise<void> => {
    if (rows.length === 0 || signal.aborted) return
    await inserter.insert({
      table: knownTable,
      columns: 'import_job_id, attempt, distinct_id, known',
      rows,
      write: (to, row) => writeKnownRow(to, attempt, row),
    })
    await addPropertiesToRows(clients, attempt, share)
    await waitForMutations(clients, importJobId, signal)
    await clearAttempt(clients, attempt)
    ;[rows, bytes] = [[], 0]
  }
  for (let from = 0; from < ids.length && !signal.aborted; from += idsPerQuestion) {
    for (const [distinctId, text] of await knownOf(ids.slice(from, from + idsPerQuestion))) {
      const lines = selectKnownMembers(text)
      if (lines !== '') rows.push({ distinctId, lines })
      bytes += Buffer.byteLength(distinctId) + Buffer.byteLength(lines)
    }
    if (bytes >= bytesMax) await insertRows()
  }
  await insertRows()
}

async function clearAttempt(clients: ClickHouseClients, { importJobId, number }: Attempt): Promise<void> {
  await clients.write((client, database) =>
    client.command({ query: `ALTER TABLE ${database}.${knownTable} DROP PARTITION (${importJobId}, ${number})` }),
  )
}

async function listIds(clients: ClickHouseClients, importJobId: number, { index, count }: IdShare): Promise<string[]> {
  const rows = await clients.write((client, database) =>
    readRows<[string]>(client, undefined, {
      query: `SELECT DISTINCT distinct_id FROM ${database}.events_pending
      WHERE ${hasPersonSql(importJobId)} AND cityHash64(distinct_id) % ${count} = ${index}`,
      clickhouse_settings: longReadSettings,
    }),
  )
  return rows.map(([distinctId]) => distinctId)
}

function hasPersonSql(importJobId: number): string {
  return `import_partition = ${importJobId} AND person_mode = 'full'`
}

/** All members, or the shortest members that fit into the limit, in their original order. */
function selectKnownMembers(propertiesJson: string): string {
  const members = listMemberTexts(propertiesJson)
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

function writeKnownRow(to: RowBinaryWriter, attempt: Attempt, { distinctId, lines }: KnownRow): RowWriteResult {
  to.uint32(attempt.importJobId)
  to.int64(attempt.number)
  to.text(distinctId)
  to.text(lines)
  return 'written'
}

/**
 * Starts rewriting the rows of the distinct ids that the attempt has in the table. The mutation of the last share of ids
 * also has a DELETE, which makes the engine rewrite whole parts. Otherwise each granule (the smallest unit that a query
 * reads) would keep its number of rows although the rows have grown.
 */
async function addPropertiesToRows(
  clients: ClickHouseClients,
  { importJobId, number }: Attempt,
  { index, count }: IdShare,
): Promise<void> {
  await clients.write(async (client, database) => {
    const ofAttempt = `FROM ${database}.${knownTable} WHERE import_job_id = ${importJobId} AND attempt = ${number}`
    // One subquery reads both lists: if the attempt was cleared between two reads, the lists would not match.
    const lists = `(SELECT (groupArray(distinct_id), groupArray(known)) ${ofAttempt})`
    const known = `transform(distinct_id, tupleElement(${lists} AS lists, 1), tupleElement(lists, 2), '')`
    for (const partition of await listPartitions(client, database, 'events_pending', importJobId))
      await client.command({
        query: `ALTER TABLE ${database}.events_pending
          UPDATE person_properties = ${addMissingSql('person_properties', known)} IN PARTITION ID '${partition}'
          WHERE person_mode = 'full' AND distinct_id IN (SELECT distinct_id ${ofAttempt})
          ${index === count - 1 ? `, DELETE IN PARTITION ID '${partition}' WHERE 0` : ''}`,
        clickhouse_settings: { mutations_sync: '0', allow_nondeterministic_mutations: 1 },
      })
  })
}

/**
 * SQL of the JSON text `text` with those members of `known` added whose keys it lacks. It uses no function that copies a
 * row's whole text once per member.
 */
function addMissingSql(text: string, known: string): string {
  // A JSON string, with the following colon if it is a key.
  const string = `"(?:[^"\\\\\\\\]|\\\\\\\\.)*":?`
  const memberKeySql = (quoted: string) =>
    `if(position(${quoted}, '\\\\') = 0, substring(${quoted}, 2, length(${quoted}) - 3),
      JSONExtractString(substring(${quoted}, 1, length(${quoted}) - 1)))`
  const members = `(splitByChar('\\n', ${known}) AS members)`
  const keys = `arrayMap(quoted -> ${memberKeySql('quoted')}, arrayMap(member -> extract(member, '^${string}'), ${members}))`
  // The keys that the text has. If the engine cannot parse the text, these include the keys of nested objects.
  const ownKeys = `(if(isValidJSON(${text}), JSONExtractKeys(${text}),
    arrayMap(quoted -> ${memberKeySql('quoted')}, arrayFilter(token -> endsWith(token, ':'), extractAll(${text}, '${string}'))))
    AS own_keys)`
  const emptied = `mapFromArrays(${ownKeys}, arrayMap(key -> '', own_keys))`
  const missing = `mapValues(mapUpdate(mapFromArrays(${keys}, members), ${emptied}))`
  const own = `substring(${text}, 2, length(${text}) - 2)`
  return `concat('{', arrayStringConcat(arrayFilter(member -> member != '', arrayConcat([${own}], ${missing})), ','), '}')`
}

/**
 * Waits until no mutation has rows of the job left, including mutations of other workers' attempts, or the signal
 * aborts.
 * @throws PortError when a mutation fails at rows of the job. The server retries that mutation, and another mutation would
 * have to wait for it.
 */
async function waitForMutations(clients: ClickHouseClients, importJobId: number, signal: AbortSignal): Promise<void> {
  for (let polls = 0; !signal.aborted; polls++) {
    const reasons = await listFailReasons(clients, importJobId)
    if (reasons.length === 0) return
    const failure = reasons.find(reason => reason !== '')
    if (failure !== undefined) throw new PortError('event-store', 'unavailable', new Error(failure))
    await sleep(computeBackOffMs(pollWaits, polls), undefined, { signal }).catch((cause: unknown) => {
      if (!signal.aborted) throw cause
    })
  }
}

/**
 * One text for each mutation that still has parts of the job left: why it failed at one of them, or an empty text. Asks per
 * part, since the server counts a mutation of one job as unfinished, and as failed, while an earlier mutation fails at
 * parts of another job.
 */
async function listFailReasons(clients: ClickHouseClients, importJobId: number): Promise<string[]> {
  const isOfJobSql = (part: string) => `startsWith(${part}, '${importJobId}-')`
  try {
    const rows = await clients.write((client, database) =>
      readRows<[string]>(client, undefined, {
        query: `SELECT if(${isOfJobSql('latest_failed_part')}, latest_fail_reason, '') FROM system.mutations
        WHERE database = '${database}' AND table = 'events_pending' AND NOT is_done
          AND position(command, '${knownTable}') > 0 AND arrayExists(part -> ${isOfJobSql('part')}, parts_to_do_names)`,
        clickhouse_settings: longReadSettings,
      }),
    )
    return rows.map(([reason]) => reason)
  } catch (error) {
    throw error instanceof PortError && isAccessDenied(error.cause)
      ? new PortError('event-store', 'unavailable', new Error(grantNeeded))
      : error
  }
}
