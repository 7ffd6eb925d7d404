// Writes rows of one table in inserts of about 24 MB and waits for each. If the engine refuses an insert because of its
// content, the insert is halved until each refused row is alone; all other rows are stored. event-rows.ts defines the bytes
// of a row.

import { Readable } from 'node:stream'
import { PortError } from '#ports/port-error.ts'
import type { ClickHouseClients } from '../connection/clickhouse-clients.ts'
import { isErrorOfRowContent } from '../connection/clickhouse-errors.ts'
import type { RowWriteResult } from './event-rows.ts'
import { RowBinaryWriter } from './row-binary.ts'

/** An insert is sent when it has this size: the fixed cost per part stays small, and the engine's memory suffices. */
const pieceBytes = 24 * 1024 * 1024
/** A buffer that has grown beyond this size, because of a huge row, is not kept for the next insert. */
const keptBufferBytes = 2 * pieceBytes

export interface TableRows<Row> {
  readonly table: string
  /** The names of the columns, in the order in which `write` writes them. */
  readonly columns: string
  readonly rows: readonly Row[]
  /** May leave the first bytes of a row that it refuses; the caller truncates them. */
  readonly write: (to: RowBinaryWriter, row: Row) => RowWriteResult
}

/** The index of a row that cannot be stored, and the reason. Lists are in ascending order of the index. */
export interface RefusedTableRow {
  readonly index: number
  readonly message: string
}

export interface RowInserter {
  /** @throws PortError when the engine could not take the rows: some may be stored, so repeat them all. */
  insert<Row>(rows: TableRows<Row>): Promise<RefusedTableRow[]>
}

export function createRowInserter(clients: ClickHouseClients): RowInserter {
  const idleWriters: RowBinaryWriter[] = []

  /**
   * Sends the rows at `indexes`, none of which `write` refuses; if the engine refuses them, halves the list to find the
   * refused rows.
   */
  const bisect = async <Row>(
    batch: TableRows<Row>,
    indexes: readonly number[],
    refused: RefusedTableRow[],
  ): Promise<void> => {
    const writer = new RowBinaryWriter()
    for (const index of indexes) batch.write(writer, batch.rows[index]!)
    const problem = await sendPiece(clients, batch, writer.written(), indexes.length)
    if (problem === null) return
    if (indexes.length === 1) {
      refused.push({ index: indexes[0]!, message: problem })
      return
    }
    const middle = indexes.length >> 1
    await bisect(batch, indexes.slice(0, middle), refused)
    await bisect(batch, indexes.slice(middle), refused)
  }

  return {
    insert: async batch => {
      const refused: RefusedTableRow[] = []
      if (batch.rows.length === 0) return refused
      const writer = idleWriters.pop() ?? new RowBinaryWriter()
      let inPiece: number[] = []
      const flush = async () => {
        if (inPiece.length === 0) return
        const problem = await sendPiece(clients, batch, writer.written(), inPiece.length)
        if (problem !== null) await bisect(batch, inPiece, refused)
        inPiece = []
        writer.truncate(0)
      }
      try {
        for (let index = 0; index < batch.rows.length; index++) {
          const start = writer.byteLength
          const written = batch.write(writer, batch.rows[index]!)
          if (written === 'written') inPiece.push(index)
          else {
            writer.truncate(start)
            refused.push({ index, message: written.refused })
          }
          if (writer.byteLength >= pieceBytes) await flush()
        }
        await flush()
      } finally {
        writer.truncate(0)
        if (writer.capacity <= keptBufferBytes) idleWriters.push(writer)
      }
      return refused.sort((a, b) => a.index - b.index)
    },
  }
}

/** @returns why the engine refuses the content, or null when the rows are durable. */
async function sendPiece<Row>(
  clients: ClickHouseClients,
  batch: TableRows<Row>,
  bytes: Buffer,
  rowCount: number,
): Promise<string | null> {
  return clients.write(async (client, database) => {
    try {
      const { stream, summary } = await client.exec({
        query: `INSERT INTO ${database}.${batch.table} (${batch.columns}) FORMAT RowBinary`,
        values: Readable.from([bytes], { objectMode: false }),
        // The server must not queue the insert, and must accept it as one block even if the months of late events need many
        // partitions.
        clickhouse_settings: { async_insert: 0, max_partitions_per_insert_block: '1000' },
      })
      for await (const _ of stream) {
        // The answer of an INSERT has no content; reading it to its end frees the connection.
      }
      requireWritten(summary?.written_rows, rowCount, batch.table)
      return null
    } catch (error) {
      if (isErrorOfRowContent(error)) return error.message
      throw error
    }
  })
}

/**
 * A 200 alone only shows that something answered. ClickHouse reports how many rows it wrote, views on the table included.
 * @throws PortError when it wrote fewer than were sent: repeat the insert.
 */
function requireWritten(writtenText: string | undefined, rowCount: number, table: string): void {
  if (Number(writtenText) >= rowCount) return
  const written = writtenText === undefined ? 'did not report how many it wrote' : `wrote ${writtenText}`
  const cause = new Error(`${rowCount} rows were sent for ${table}, and the event store ${written}`)
  throw new PortError('event-store', 'unavailable', cause)
}
