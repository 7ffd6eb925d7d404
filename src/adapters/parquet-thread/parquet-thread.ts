// The thread that encodes one Parquet file.

import { parentPort, workerData } from 'node:worker_threads'
import { constants, zstdCompressSync } from 'node:zlib'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { ParquetColumn, ParquetValue } from '#ports/parquet-files.ts'
import type { ParquetReply, ParquetRequest, ParquetThreadData } from './parquet-protocol.ts'

type Schema = ConstructorParameters<typeof ParquetWriter>[0]['schema']

/** A writer whose bytes can be taken, which releases their memory, while it continues to count all written bytes. */
class TakenBytes extends ByteWriter {
  take(): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(this.buffer.slice(0, this.index)) as Uint8Array<ArrayBuffer>
    this.index = 0
    return bytes
  }
}

const elementOf: Record<ParquetColumn['kind'], Omit<Schema[number], 'name'>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
  json: { type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
  instant: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', repetition_type: 'OPTIONAL' },
  boolean: { type: 'BOOLEAN', repetition_type: 'REQUIRED' },
  integer: { type: 'INT64', repetition_type: 'REQUIRED' },
}

const { columns } = workerData as ParquetThreadData
const out = new TakenBytes()
const file = new ParquetWriter({
  writer: out,
  schema: [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, kind }) => ({ name, ...elementOf[kind] })),
  ],
  codec: 'ZSTD',
  compressors: { ZSTD: bytes => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } }) },
  createdBy: 'pennon',
})
let rows: ParquetValue[][] = columns.map(() => [])

parentPort!.on('message', (request: ParquetRequest) => {
  if (request.kind === 'rows') {
    for (const [index, values] of request.columns.entries()) for (const value of values) rows[index]!.push(value)
    return
  }
  writeGroup()
  if (request.kind === 'end') {
    file.kvMetadata = Object.entries(request.metadata).map(([key, value]) => ({ key, value }))
    file.finish()
  }
  const bytes = out.take()
  parentPort!.postMessage({ bytes } satisfies ParquetReply, [bytes.buffer])
})

function writeGroup(): void {
  const rowCount = rows[0]?.length ?? 0
  if (rowCount === 0) return
  file.write({
    rowGroupSize: rowCount,
    columnData: columns.map(({ name, kind }, index) => ({
      name,
      data: rows[index]!.map(value => toStoredValue(kind, value)),
      // No index of pages is written: its entries would be held in memory until the end of the file.
      offsetIndex: false,
      // The minimum and maximum of JSON texts are useless to readers, and may be long.
      statistics: kind !== 'json',
    })),
  })
  // Drops what the writer collects for indexes, which are not written; otherwise it would be held until the end of the
  // file.
  file.pendingIndexes = []
  rows = columns.map(() => [])
}

function toStoredValue(kind: ParquetColumn['kind'], value: ParquetValue): unknown {
  if (value === null) return null
  if (kind === 'instant') return new Date(value as number)
  return kind === 'integer' ? BigInt(value as number) : value
}
