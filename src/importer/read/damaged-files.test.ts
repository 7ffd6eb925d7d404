// However the bytes of a file are damaged, reading it ends with a reject and never throws.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import avsc from 'avsc'
import fc from 'fast-check'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { runs } from '../../../tests/support/nightly.ts'
import { outcomeOf, zipFiles } from '../../../tests/support/reading.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { createRecordReader } from './read-files.ts'

const rows = Array.from({ length: 300 }, (_, n) => ({ n, text: `text ${n % 17}`, tags: ['a', String(n)] }))
const lines = rows.map(row => `${JSON.stringify(row)}\n`).join('')

/** Without a checksum, a change may produce other valid values. */
const files: readonly (readonly [name: string, bytes: () => Promise<Buffer>, hasSum: boolean])[] = [
  ['gzip', async () => gzipSync(lines), true],
  ['zip', () => zipFiles({ 'rows.json': lines }, { dataDescriptor: false }), true],
  ['zstd', async () => zstdCompressSync(lines), false],
  ['Parquet', async () => parquet(), false],
  ['Avro', () => avro(), false],
]

for (const [name, make, hasSum] of files)
  describe(`a file of ${name}`, () => {
    it('with changed bytes can be read without an exception', async t => {
      const path = join(tempDir(t), 'file.json')
      const bytes = await make()
      const whole = await read(path, bytes)
      assert.equal(whole.values.length, rows.length)
      const changes = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 })), {
        minLength: 1,
        maxLength: 3,
      })
      await fc.assert(
        fc.asyncProperty(changes, async pairs => {
          const changed = Buffer.from(bytes)
          for (const [at, by] of pairs) changed[at]! ^= by
          const found = await read(path, changed)
          if (hasSum && found.rejects.length === 0) assert.deepEqual(found.values, whole.values)
        }),
        { numRuns: runs(30, 150) },
      )
    })

    it('that is truncated anywhere is read up to that point, with a reject unless it is still complete', async t => {
      const path = join(tempDir(t), 'file.json')
      const bytes = await make()
      const whole = await read(path, bytes)
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: bytes.length - 1 }), async length => {
          const { values, rejects } = await read(path, bytes.subarray(0, length))
          assert.deepEqual(values, whole.values.slice(0, values.length))
          // An Avro file has no end marker: cut after a block, it is a valid shorter file.
          const isWholeBlock = name === 'Avro' && bytes.subarray(0, length).subarray(-16).equals(bytes.subarray(-16))
          const isReported = rejects.length === 1 || values.length === rows.length || isWholeBlock
          assert.ok(isReported, `${values.length} and ${rejects}`)
        }),
        { numRuns: runs(20, 60) },
      )
    })
  })

async function read(path: string, bytes: Buffer) {
  writeFileSync(path, bytes)
  const reader = createRecordReader({ spool: { folder: dirname(path) } })
  const records = await Array.fromAsync(reader({ path, object: 'file.json' }))
  const [values = [], rejects = []] = [true, false].map(isValue =>
    records.filter(({ parsed }) => 'value' in parsed === isValue).map(({ parsed }) => outcomeOf(parsed)),
  )
  return { values, rejects }
}

function parquet(): Buffer {
  return Buffer.from(
    parquetWriteBuffer({
      columnData: [
        { name: 'n', data: rows.map(({ n }) => n), type: 'INT32' },
        { name: 'text', data: rows.map(({ text }) => text), type: 'STRING' },
      ],
    }),
  )
}

async function avro(): Promise<Buffer> {
  const schema: avsc.Schema = {
    type: 'record',
    name: 'Row',
    fields: [
      { name: 'n', type: 'int' },
      { name: 'text', type: ['null', 'string'] },
      { name: 'tags', type: { type: 'array', items: 'string' } },
    ],
  }
  const encoder = new avsc.streams.BlockEncoder(schema, { blockSize: 1_000 })
  for (const row of rows) encoder.write(row)
  encoder.end()
  return Buffer.concat(await encoder.toArray())
}
