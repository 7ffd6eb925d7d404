// Reads the server's own lists of the tables' parts, and the marks that workers leave in the store. Together they show,
// without reading an event, whether parts are missing or broken, or whether this is another copy of the store.

import type { RowRange } from '#core/processing/row-ranges.ts'
import type { MarkedRowRanges, StoreMark } from '#ports/events/event-store-upkeep.ts'
import { type ClickHouseClient, type ClickHouseClients, readRows } from '../connection/clickhouse-clients.ts'
import { isAccessDenied } from '../connection/clickhouse-errors.ts'

/** Only tables of this engine are checked part by part: each replica of a Replicated… table merges at its own pace. */
const checkedEngine = 'ReplacingMergeTree'

/** Tables that the log or the state can restore. */
const checkedTables = [
  'events',
  'events_pending',
  'person_distinct_id_overrides',
  'rejected_events',
  'replay_messages',
  'deduplicated_flag_calls',
]

/**
 * The length of a slot. A worker leaves one mark every 10 s at most, and two more around a stop; only if three marks fall
 * into one slot, the first mark is lost.
 */
const markSlotSeconds = 5
const markSlotCount = (7 * 86_400) / markSlotSeconds

/** See `EventStoreUpkeep.findRowRanges`. */
export async function findRowRanges(
  clients: Pick<ClickHouseClients, 'write'>,
  instance: string,
  markId: string | null,
): Promise<MarkedRowRanges | null> {
  return clients.write(async (client, database) => {
    try {
      const ranges = await listRowRanges(client, database, checkedTables)
      return ranges === null ? null : { ranges, isMarked: await isMarked(client, database, instance, markId) }
    } catch (error) {
      if (isAccessDenied(error)) return null
      throw error
    }
  })
}

/** The ranges of rows that these tables have; null when the user may not read the server's lists. */
export async function listRowRanges(
  client: ClickHouseClient,
  database: string,
  names: readonly string[],
): Promise<RowRange[] | null> {
  try {
    const tables = await findTables(client, database, names)
    const checked = tables.filter(({ engine }) => engine === checkedEngine)
    const parts = await findParts(client, database, checked)
    // Tables of other engines are compared only by their id, and by whether they have rows.
    const whole = tables
      .filter(({ engine, hasRows }) => engine !== checkedEngine && hasRows)
      .map(({ table, tableId }) => ({
        table,
        tableId,
        partition: '',
        from: 0,
        to: 0,
        oldestMs: null,
        newestMs: null,
      }))
    return [...parts, ...whole]
  } catch (error) {
    if (isAccessDenied(error)) return null
    throw error
  }
}

/** See `EventStoreUpkeep.writeMark`. */
export function writeStoreMark(
  clients: Pick<ClickHouseClients, 'write'>,
  { instance, id, former }: StoreMark,
): Promise<void> {
  return clients.write(async (client, database) => {
    await client.command({
      query: `INSERT INTO ${database}.worker_marks (instance, slot, id, former, written_at)
        SELECT {instance:String}, intDiv(toUnixTimestamp(now()), ${markSlotSeconds}) % ${markSlotCount},
          {id:String}, {former:String}, now64(6)`,
      query_params: { instance, id, former: former ?? '' },
    })
  })
}

interface FoundTable {
  readonly table: string
  readonly tableId: string
  readonly engine: string
  readonly hasRows: boolean
}

async function findTables(client: ClickHouseClient, database: string, names: readonly string[]): Promise<FoundTable[]> {
  const rows = await readRows<[string, string, string, number]>(client, undefined, {
    query: `SELECT name, toString(uuid), engine, coalesce(total_rows, 1) > 0 FROM system.tables
      WHERE database = {database:String} AND name IN {tables:Array(String)}`,
    query_params: { database, tables: names },
  })
  return rows.map(([table, tableId, engine, hasRows]) => ({ table, tableId, engine, hasRows: Boolean(hasRows) }))
}

/** Reads the tables' parts, except empty parts, which the server is about to remove. */
async function findParts(
  client: ClickHouseClient,
  database: string,
  tables: readonly FoundTable[],
): Promise<RowRange[]> {
  const rows = await readRows<[string, string, string, string, number, number]>(client, undefined, {
    query: `SELECT table, partition_id, toString(min_block_number), toString(max_block_number),
        toUnixTimestamp(min_time), toUnixTimestamp(max_time)
      FROM system.parts WHERE database = {database:String} AND table IN {tables:Array(String)} AND active AND rows > 0`,
    query_params: { database, tables: tables.map(({ table }) => table) },
  })
  const ids = new Map(tables.map(({ table, tableId }) => [table, tableId]))
  return rows.map(([table, partition, from, to, oldest, newest]) => ({
    ...{ table, tableId: ids.get(table)!, partition, from: Number(from), to: Number(to) },
    // `newest` is 0 when the table's partition key has no time. Times are whole seconds, so the newest time is rounded up
    // to the end of its second.
    oldestMs: newest === 0 ? null : oldest * 1000,
    newestMs: newest === 0 ? null : newest * 1000 + 999,
  }))
}

/** Whether the store has this mark. A mark in a replaced row that no merge has removed yet also counts. */
async function isMarked(
  client: ClickHouseClient,
  database: string,
  instance: string,
  id: string | null,
): Promise<boolean> {
  if (id === null) return false
  const [row] = await readRows<[number | boolean]>(client, undefined, {
    query: `SELECT count() > 0 FROM ${database}.worker_marks
      WHERE instance = {instance:String} AND (id = {id:String} OR former = {id:String})`,
    query_params: { instance, id },
  })
  return Boolean(row![0])
}
