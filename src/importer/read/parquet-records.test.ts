import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import type { CompressionCodec, SchemaElement, SchemaTree } from 'hyparquet'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { snappyCompress } from 'hyparquet-writer/src/snappy.js'
import { detailOf, outcomeOf, zigzag } from '../../../tests/support/reading.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { readParquetRecords, unpackLz4 } from './parquet-records.ts'
import { createRowConverter } from './parquet-values.ts'

describe('a Parquet file', () => {
  it('keeps the digits of integers and decimals, and the parts of times', async t => {
    const int64 = { type: 'INT64' } as const
    const decimal = { ...int64, converted_type: 'DECIMAL', scale: 2, precision: 18 } as const
    const instant = { ...int64, logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' } } as const
    const wall = { ...int64, logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'NANOS' } } as const
    const oldInstant = { ...int64, converted_type: 'TIMESTAMP_MILLIS' } as const
    const day = { type: 'INT32', converted_type: 'DATE' } as const
    const time = { ...int64, logical_type: { type: 'TIME', isAdjustedToUTC: false, unit: 'MICROS' } } as const
    const text = { type: 'BYTE_ARRAY', converted_type: 'UTF8' } as const
    const cells: readonly (readonly [type: Omit<SchemaElement, 'name'>, stored: unknown, json: string])[] = [
      [int64, 7325461098234567891n, '7325461098234567891'],
      [decimal, -1230n, '"-12.30"'],
      [decimal, 5n, '"0.05"'],
      [instant, 1714564800123456n, '"2024-05-01T12:00:00.123456Z"'],
      [instant, -1n, '"1969-12-31T23:59:59.999999Z"'],
      [wall, 1714564800123456789n, '"2024-05-01T12:00:00.123456789"'],
      [wall, 0n, '"1970-01-01T00:00:00.000000000"'],
      [oldInstant, 1714564800250n, '"2024-05-01T12:00:00.250Z"'],
      [day, 19844, '"2024-05-01"'],
      [day, -1, '"1969-12-31"'],
      [time, 43200000001n, '"12:00:00.000001"'],
      [time, 0n, '"00:00:00.000000"'],
      [text, 'é', '"é"'],
    ]
    const file = written({
      fields: cells.map(([type], index) => ({ name: `${index}`, ...type })),
      columns: Object.fromEntries(cells.map(([, stored], index) => [`${index}`, [stored]])),
    })
    const [row] = await records(t, file)
    assert.equal(
      Buffer.from(row!.bytes).toString(),
      `{${cells.map(([, , json], index) => `"${index}":${json}`).join()}}`,
    )
  })

  it('is refused for a decimal of an enormous size or scale', () => {
    const read = (scale: number, bytes: number) =>
      convert({ type: 'BYTE_ARRAY', converted_type: 'DECIMAL', scale }, new Uint8Array(bytes).fill(1, bytes - 1))
    assert.deepEqual(read(2, 64), { it: '0.01' })
    assert.throws(() => read(2, 65), /a decimal has 65 bytes, more than the limit of 64/)
    assert.throws(() => read(3e8, 1), /a decimal has the scale 300000000, more than the limit of 1000/)
  })

  it('whose lists claim more values than it has bytes is refused before memory is allocated', async t => {
    const thirtyMillion = [0xf9, 0x80, 0x87, 0xa7, 0x0e]
    const footer = [0x19, ...Array.from({ length: 40 }, () => thirtyMillion).flat()]
    const mark = [...Buffer.from('PAR1')]
    const bytes = Buffer.from([...mark, ...footer, footer.length, 0, 0, 0, ...mark])
    assert.match(detailOf((await records(t, bytes))[0]!), /a list in its metadata claims to hold 30000000 values/)
  })

  it('is read into the rows of all its groups, each with its number', async t => {
    const count = 50_000
    const file = written({
      fields: [{ name: 'n', type: 'INT32' }],
      columns: { n: Array.from({ length: count }, (_, index) => index) },
      rowGroupSize: 23_000,
    })
    const found = await records(t, file)
    assert.deepEqual(
      found.map(({ parsed }) => outcomeOf(parsed)),
      Array.from({ length: count }, (_, n) => ({ n })),
    )
    assert.deepEqual(found.at(-1)!.raw, { object: 'file', line: count, byte: 0 })
  })

  it('may contain lists and objects in its columns', async t => {
    const file = written({
      fields: [
        { name: 'tags', num_children: 1, converted_type: 'LIST', repetition_type: 'OPTIONAL' },
        { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
        { name: 'element', type: 'INT64', repetition_type: 'OPTIONAL' },
        { name: 'geo', num_children: 2, repetition_type: 'OPTIONAL' },
        { name: 'city', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
        { name: 'at', type: 'INT64', converted_type: 'TIMESTAMP_MICROS', repetition_type: 'OPTIONAL' },
      ],
      columns: {
        tags: [[1n, null, 2n], null, []],
        geo: [{ city: 'Lyon', at: 1n }, { city: null, at: null }, null],
      },
    })
    assert.deepEqual(await values(t, file), [
      { tags: [1, null, 2], geo: { city: 'Lyon', at: '1970-01-01T00:00:00.000001Z' } },
      { tags: null, geo: { city: null, at: null } },
      { tags: [], geo: null },
    ])
  })

  it('that is small gives a reject for a huge row whose list refers to one long text many times', async t => {
    const text = 'x'.repeat(1_000)
    const file = written({
      fields: [
        { name: 'tags', num_children: 1, converted_type: 'LIST', repetition_type: 'OPTIONAL' },
        { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
        { name: 'element', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
      ],
      columns: { tags: [[text], Array<string>(400_000).fill(text), [text, text]] },
    })
    assert.ok(file.length < 100_000, `${file.length} bytes`)
    assert.deepEqual(await values(t, file), [{ tags: [text] }, 'record_too_large', { tags: [text, text] }])
  })

  it('may have INT96 times, which are instants', () => {
    assert.deepEqual(convert({ type: 'INT96' }, 1714564800123456789n), { it: '2024-05-01T12:00:00.123456789Z' })
    assert.deepEqual(convert({ type: 'INT96' }, undefined), { it: null })
  })

  const packers: Partial<Record<CompressionCodec, (input: Uint8Array) => Uint8Array>> = {
    UNCOMPRESSED: input => input,
    SNAPPY: snappyCompress,
    GZIP: input => gzipSync(input),
    ZSTD: input => zstdCompressSync(input),
    BROTLI: input => brotliCompressSync(input),
    LZ4_RAW: literalsOnly,
  }
  for (const [codec, pack] of Object.entries(packers) as [CompressionCodec, (input: Uint8Array) => Uint8Array][]) {
    const texts = Array.from({ length: 1_000 }, (_, index) => `text ${index % 7}`)
    const packed = (packPage: typeof pack) =>
      written({
        fields: [{ name: 'text', type: 'BYTE_ARRAY', converted_type: 'UTF8' }],
        columns: { text: texts },
        codec,
        compressors: { [codec]: packPage },
      })
    it(`is read with the codec ${codec}`, async t => {
      assert.deepEqual(
        await values(t, packed(pack)),
        texts.map(text => ({ text })),
      )
    })

    if (['GZIP', 'ZSTD', 'BROTLI'].includes(codec))
      it(`is refused if a page decompresses to more than its stated size, with the codec ${codec}`, async t => {
        const file = packed(input => pack(Buffer.concat([input, Buffer.alloc(1_000_000)])))
        const [only, ...others] = await records(t, file)
        assert.deepEqual([outcomeOf(only!.parsed), others], ['compressed_input', []])
        assert.match(detailOf(only!), /a page unpacks to more than its stated \d+ bytes/)
      })
  }

  it('that is truncated or damaged is read up to that point, with one reject', async t => {
    const count = 60_000
    const file = written({
      fields: [{ name: 'n', type: 'INT32' }],
      columns: { n: Array.from({ length: count }, (_, index) => (index * 7919) % count) },
      rowGroupSize: 20_000,
      codec: 'GZIP',
      compressors: { GZIP: (input: Uint8Array) => gzipSync(input) },
    })
    assert.deepEqual(await values(t, file.subarray(0, file.length - 5)), ['truncated_record'])
    const damaged = Buffer.from(file)
    damaged.fill(0xaa, Math.floor(file.length / 2), Math.floor(file.length / 2) + 100)
    const found = await values(t, damaged)
    assert.deepEqual([found.length, found.at(-1)], [20_001, 'compressed_input'])
  })

  it('may have two columns with the same name, of which only the first is read', async t => {
    let pageCount = 0
    const file = written({
      fields: [
        { name: 'first', type: 'INT32' },
        { name: 'other', type: 'INT32' },
      ],
      columns: { first: [1, 2], other: [3, 4] },
      codec: 'GZIP',
      compressors: { GZIP: input => (pageCount++ === 0 ? gzipSync(input) : new Uint8Array(20)) },
    })
    const sameNames = Buffer.from(file.toString('latin1').replaceAll('other', 'first'), 'latin1')
    assert.deepEqual(await values(t, sameNames), [{ first: 1 }, { first: 2 }])
  })

  it('of a few bytes that claims many rows without columns is refused quickly, without blocking timers', async t => {
    let turns = 0
    const timer = setInterval(() => turns++, 1)
    t.after(() => clearInterval(timer))
    const found = await records(t, withoutColumns({ rows: 100_000_000_000n, leaf: null }))
    assert.equal(found.length, 100_001)
    assert.match(detailOf(found.at(-1)!), /it claims more than 100000 rows that hold no value$/)
    assert.ok(turns > 1, `${turns} turns`)
  })

  it('whose group lacks a column of the schema is damaged', async t => {
    const found = await records(t, withoutColumns({ rows: 100_000_000_000n, leaf: 'n' }))
    assert.deepEqual(found.map(detailOf), ['the Parquet file cannot be read: a row group lacks columns of the schema'])
  })
})

/** A value of a single column. */
function convert(type: Omit<SchemaElement, 'name'>, value: unknown) {
  const leaf: SchemaTree = { element: { name: 'it', ...type }, children: [], count: 1, path: ['it'] }
  const root: SchemaTree = { element: { name: 'root', num_children: 1 }, children: [leaf], count: 2, path: [] }
  return createRowConverter(root)({ it: value })
}

/** A file with one group that has rows and no columns, whose schema has at most one. */
function withoutColumns({ rows, leaf }: { readonly rows: bigint; readonly leaf: string | null }): Buffer {
  const text = (value: string) => [value.length, ...Buffer.from(value)]
  // Thrift's compact protocol; a field starts with its type and the difference of its number from the previous one.
  const root = [0x48, ...text('root'), 0x15, ...zigzag(leaf === null ? 0 : 1), 0]
  const leaves = leaf === null ? [] : [[0x15, ...zigzag(1), 0x25, ...zigzag(0), 0x18, ...text(leaf), 0]]
  const schema = [0x19, (leaves.length + 1) * 16 + 12, ...root, ...leaves.flat()]
  const group = [0x19, 0x0c, 0x16, ...zigzag(0), 0x16, ...zigzag(rows), 0]
  const footer = [0x15, ...zigzag(1), ...schema, 0x16, ...zigzag(rows), 0x19, 0x1c, ...group, 0]
  return Buffer.from([...Buffer.from('PAR1'), ...footer, footer.length, 0, 0, 0, ...Buffer.from('PAR1')])
}

interface Written {
  readonly fields: readonly SchemaElement[]
  readonly columns: Readonly<Record<string, unknown[]>>
  readonly rowGroupSize?: number
  readonly codec?: CompressionCodec
  readonly compressors?: Readonly<Record<string, (input: Uint8Array) => Uint8Array>>
}

function written({ fields, columns, ...options }: Written): Buffer {
  const names = Object.keys(columns)
  const root: SchemaElement = { name: 'root', num_children: names.length }
  return Buffer.from(
    parquetWriteBuffer({
      schema: [root, ...fields.map(field => ({ repetition_type: 'REQUIRED' as const, ...field }))],
      columnData: names.map(name => ({ name, data: columns[name]! })),
      ...options,
    }),
  )
}

async function records(t: TestContext, bytes: Buffer) {
  const path = join(tempDir(t), 'file.parquet')
  writeFileSync(path, bytes)
  return Array.fromAsync(readParquetRecords(path, 'file'))
}

async function values(t: TestContext, bytes: Buffer) {
  return (await records(t, bytes)).map(({ parsed }) => outcomeOf(parsed))
}

/** LZ4's encoding of bytes without repetition. */
function literalsOnly(input: Uint8Array): Uint8Array {
  const more = input.length - 15
  const length = more < 0 ? [input.length << 4] : [0xf0, ...Array<number>(Math.floor(more / 255)).fill(255), more % 255]
  const packed = Uint8Array.from([...length, ...input])
  assert.deepEqual(unpackLz4(packed, input.length), Uint8Array.from(input))
  return packed
}
