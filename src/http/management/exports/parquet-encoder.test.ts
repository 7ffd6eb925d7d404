import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openParquetFile } from '#adapters/parquet-thread/parquet-file.ts'
import { runExport } from '#services/exports/run-export.ts'
import type { ExportColumn } from '#wire/exports/export-column.ts'
import { createParquetEncoder } from './parquet-encoder.ts'

interface Row {
  readonly id: number
  readonly text: string
}

const columns: readonly ExportColumn<Row>[] = [
  { name: 'id', kind: 'integer', read: ({ id }) => id },
  { name: 'text', kind: 'json', read: ({ text }) => text },
  { name: 'at', kind: 'instant', read: ({ id }) => (id % 2 === 0 ? null : id * 1_000) },
  { name: 'odd', kind: 'boolean', read: ({ id }) => id % 2 === 1 },
]

async function* batchesOf(count: number, rowsEach: number): AsyncGenerator<readonly Row[]> {
  for (let batch = 0; batch < count; batch++)
    yield Array.from({ length: rowsEach }, (_, index) => ({ id: batch * rowsEach + index, text: '{"n":1.0}' }))
}

async function exported(batches: AsyncGenerator<readonly Row[]>, limits: Parameters<typeof createParquetEncoder>[2]) {
  const encoding = createParquetEncoder(columns, openParquetFile, limits)
  const pieces: Uint8Array[] = []
  const progress = { rowCount: 0, cursor: null }
  try {
    const next = await runExport({
      batches,
      encoding,
      target: { write: async bytes => void pieces.push(bytes) },
      limit: Number.MAX_SAFE_INTEGER,
      cursorOf: ({ id }) => String(id),
      findStopReason: async () => null,
      progress,
    })
    return { next, progress, bytes: Buffer.concat(pieces), pieces: pieces.filter(({ length }) => length > 0).length }
  } finally {
    encoding.close!()
  }
}

describe('a Parquet file', () => {
  it('is sent group by group and ends with its footer and magic number', async () => {
    const limits = { groupCharsMax: 2_000, groupRowsMax: 1_000, groupCountMax: 1_000 }
    const { next, progress, bytes, pieces } = await exported(batchesOf(5, 600), limits)
    assert.deepEqual([next, progress.rowCount], [null, 3_000])
    assert.ok(pieces > 5, `${pieces} pieces`)
    assert.deepEqual([bytes.subarray(0, 4).toString(), bytes.subarray(-4).toString()], ['PAR1', 'PAR1'])
    assert.ok(bytes.includes('pennon.export.complete'))
  })

  it('ends after the maximum number of row groups, with the cursor of the next file', async () => {
    const limits = { groupCharsMax: 2_000, groupRowsMax: 1_000, groupCountMax: 3 }
    const { next, progress, bytes } = await exported(batchesOf(5, 600), limits)
    assert.equal(next, String(progress.rowCount - 1))
    assert.ok(progress.rowCount >= 600 && progress.rowCount < 3_000)
    assert.ok(bytes.includes('pennon.export.next'))
  })

  it('may be empty', async () => {
    const limits = { groupCharsMax: 2_000, groupRowsMax: 1_000, groupCountMax: 3 }
    const { next, bytes } = await exported(batchesOf(0, 0), limits)
    assert.deepEqual([next, bytes.subarray(-4).toString()], [null, 'PAR1'])
  })
})
