import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { crc32, deflateRawSync, zstdCompressSync } from 'node:zlib'
import avsc from 'avsc'
import { snappyCompress } from 'hyparquet-writer/src/snappy.js'
import { detailOf, outcomeOf, unpackedFile, zigzag } from '../../../tests/support/reading.ts'
import { readAvroRecords } from './avro-records.ts'

const schema = {
  type: 'record',
  name: 'Event',
  namespace: 'heap',
  fields: [
    { name: 'id', type: 'long' },
    { name: 'user', type: ['null', 'string'] },
    { name: 'at', type: { type: 'long', logicalType: 'timestamp-micros' } },
    { name: 'seen', type: { type: 'long', logicalType: 'local-timestamp-millis' } },
    { name: 'day', type: { type: 'int', logicalType: 'date' } },
    { name: 'price', type: { type: 'bytes', logicalType: 'decimal', precision: 9, scale: 2 } },
    { name: 'kind', type: { type: 'enum', name: 'Kind', symbols: ['load', 'click'] } },
    { name: 'tags', type: { type: 'array', items: 'string' } },
    { name: 'more', type: { type: 'map', values: ['null', 'double', 'boolean'] } },
    { name: 'key', type: { type: 'fixed', name: 'Key', size: 2 } },
    { name: 'share', type: 'float' },
    { name: 'parent', type: ['null', 'heap.Event'] },
  ],
}
const row = {
  id: 7,
  user: 'ü-1',
  at: 1714564800123456,
  seen: -1,
  day: 19844,
  price: Buffer.from([0xff, 0x85]),
  kind: 'click',
  tags: ['a', 'b'],
  more: { a: 1.5, b: null, c: true },
  key: Buffer.from('k1'),
  share: 0.1,
  parent: null,
}
const read = {
  ...row,
  at: '2024-05-01T12:00:00.123456Z',
  seen: '1969-12-31T23:59:59.999',
  day: '2024-05-01',
  price: '-1.23',
  key: 'k1',
}

describe('an Avro file', () => {
  it('is read into typed records, for any chunking', async () => {
    const bytes = await written(Array.from({ length: 500 }, (_, id) => ({ ...row, id, parent: { ...row, id: -id } })))
    for (const chunk of [1_000_000, 1_000, 1]) {
      const records = await recordsIn(bytes, chunk)
      assert.equal(records.length, 500)
      assert.deepEqual(records[499], { line: 500, value: { ...read, id: 499, parent: { ...read, id: -499 } } })
    }
  })

  it('gives a reject for a record that is nested too deeply', async () => {
    const nested = (depth: number) => {
      let parent: typeof row | null = null
      for (let left = depth; left > 0; left--) parent = { ...row, parent } as typeof row
      return parent!
    }
    // The list in the innermost record is one more level.
    const records = await recordsIn(await written([nested(499), nested(500), nested(1)]), 1_000_000)
    assert.deepEqual(
      records.map(({ value }) => (typeof value === 'string' ? value : 'read')),
      ['read', 'json_syntax', 'read'],
    )
  })

  it('keeps the digits of 64-bit integers', async () => {
    const type = { type: 'record', name: 'Ids', fields: [{ name: 'id', type: 'long' }] }
    // Zigzag encoding has an odd number for each negative one.
    const least = [...Array<number>(9).fill(0xff), 1]
    const records = readAvroRecords(unpackedFile(container(type, [[2, [...zigzag(7325461098234567891n), ...least]]])))
    assert.deepEqual(
      (await Array.fromAsync(records)).map(({ bytes }) => Buffer.from(bytes).toString()),
      ['{"id":7325461098234567891}', '{"id":-9223372036854775808}'],
    )
  })

  const codecs: Readonly<Record<string, (block: Buffer) => Buffer>> = {
    deflate: block => deflateRawSync(block),
    zstandard: block => zstdCompressSync(block),
    snappy: block => {
      const sum = Buffer.alloc(4)
      sum.writeUInt32BE(crc32(block))
      return Buffer.concat([snappyCompress(block), sum])
    },
  }
  for (const [codec, pack] of Object.entries(codecs))
    it(`is read with the codec ${codec}`, async () => {
      assert.deepEqual(await recordsIn(await written([row, row], { codec, pack }), 100), [
        { line: 1, value: read },
        { line: 2, value: read },
      ])
    })

  it('that is truncated or damaged is read up to that point, with one reject', async () => {
    const bytes = await written(Array.from({ length: 2_000 }, (_, id) => ({ ...row, id })))
    const cutOff = await recordsIn(bytes.subarray(0, bytes.length - 100), 1_000)
    assert.ok(cutOff.length > 500, `${cutOff.length} records`)
    assert.deepEqual(cutOff.at(-1), { line: cutOff.length, value: 'truncated_record' })
    const damaged = Buffer.from(bytes)
    damaged[damaged.length - 3]! ^= 1
    assert.equal((await recordsIn(damaged, 1_000)).at(-1)!.value, 'compressed_input')
    const bzip2 = await written([row], { codec: 'bzip2', pack: block => block })
    assert.deepEqual(await recordsIn(bzip2, 1_000), [{ line: 1, value: 'compressed_input' }])
  })

  it('is damaged if a value claims an enormous size', async () => {
    const one = (type: object) => ({ type: 'record', name: 'One', fields: [{ name: 'it', type }] })
    const decimal = (scale: unknown) => one({ type: 'bytes', logicalType: 'decimal', precision: 9, scale })
    const fixed = (size: unknown) => one({ type: 'fixed', name: 'Fixed', size })
    const claims: readonly (readonly [type: object, body: readonly number[], said: RegExp | object])[] = [
      [decimal(2), [...zigzag(64), ...Array<number>(64).fill(0)], { it: '0.00' }],
      [decimal(2), [...zigzag(65), ...Array<number>(65).fill(0)], /a decimal has 65 bytes, more than the limit of 64/],
      [decimal(-1_000), [2, 2], { it: `2${'0'.repeat(1_000)}` }],
      [decimal(3e8), [2, 2], /a decimal has the scale 300000000, more than the limit of 1000/],
      [decimal(-3e8), [2, 2], /a decimal has the scale -300000000, /],
      [decimal('many'), [2, 2], /a decimal has the scale NaN, /],
      // Neither takes any bytes of the block, so there could be any number of such records.
      [fixed(0.001), [2], /a value is longer than what holds it/],
      [fixed('many'), [2], /a value is longer than what holds it/],
    ]
    for (const [type, body, said] of claims) {
      const [first] = await Array.fromAsync(readAvroRecords(unpackedFile(container(type, [[1, body]]))))
      if (said instanceof RegExp) assert.match(detailOf(first!), said)
      else assert.deepEqual(outcomeOf(first!.parsed), said)
    }
  })

  describe('of records that take no bytes', () => {
    const record = (name: string, type: unknown) => ({ type: 'record', name: 'Record', fields: [{ name, type }] })
    const listOf = (items: unknown) => ({ ...record('all', { type: 'array', items }), name: 'Lists' })
    const nothing = record('no', 'null')
    const longName = 'n'.repeat(1_000)
    const longNames = listOf(record(longName, 'null'))
    const longSymbols = listOf({ type: 'enum', name: 'Symbol', symbols: [longName] })

    it('contains them, also in lists and in an empty block', async () => {
      assert.deepEqual(
        (await recordsIn(container(nothing, [[2, []]]), 100)).map(({ value }) => value),
        [{ no: null }, { no: null }],
      )
      const lists = await recordsIn(container(listOf(nothing), [[1, [...zigzag(5), 0]]]), 100)
      assert.deepEqual(lists, [{ line: 1, value: { all: Array.from({ length: 5 }, () => ({ no: null })) } }])
    })

    const manyBlocks = Array.from({ length: 20 }, () => [10_000, []] as const)
    const manyLists = Array.from({ length: 200 }, () => zigzag(10_000)).flat()
    const claims: readonly (readonly [type: object, blocks: readonly Block[], before: number, said: RegExp])[] = [
      [nothing, [[2 ** 40, []]], 0, /a block claims to have 1099511627776 records/],
      [nothing, [[60_000_000, [0]]], 100_000, /it claims more than 100000 records that take no bytes/],
      [nothing, manyBlocks, 100_000, /it claims more than 100000 records that take no bytes/],
      [listOf(nothing), [[1, [...zigzag(2 ** 40), 0]]], 0, /a record claims more than 1000000 values/],
      // Each list is within the limit, but not all of them together.
      [listOf(nothing), [[1, [...manyLists, 0]]], 0, /a record claims more than 1000000 values/],
      [longNames, [[1, [...zigzag(400_000), 0]]], 0, /a record repeats more than 67108864 bytes of names/],
      [
        longSymbols,
        [[1, [...zigzag(400_000), ...Array<number>(400_001).fill(0)]]],
        0,
        /a record repeats more than 67108864 bytes of names/,
      ],
      [listOf(nothing), [[2, [...zigzag(5), 0]]], 1, /a block has fewer records than it says/],
    ]
    for (const [index, [type, blocks, before, said]] of claims.entries())
      it(`is damaged if it claims an implausible number of them (${index + 1})`, async () => {
        const records = await Array.fromAsync(readAvroRecords(unpackedFile(container(type, blocks), { cuts: 1_000 })))
        assert.equal(records.length - 1, before)
        assert.match(detailOf(records.at(-1)!), said)
      })
  })
})

type Block = readonly [count: number, body: readonly number[]]

function container(type: object, blocks: readonly Block[]): Buffer {
  const sync = Buffer.alloc(16, 7)
  const text = (value: string) => [...zigzag(value.length), ...Buffer.from(value)]
  const header = [...zigzag(1), ...text('avro.schema'), ...text(JSON.stringify(type)), 0]
  const bodies = blocks.map(([count, body]) =>
    Buffer.concat([Buffer.from([...zigzag(count), ...zigzag(body.length)]), Buffer.from(body), sync]),
  )
  return Buffer.concat([Buffer.from('Obj\x01'), Buffer.from(header), sync, ...bodies])
}

interface Packing {
  readonly codec: string
  readonly pack: (block: Buffer) => Buffer
}

async function written(rows: readonly object[], { codec, pack }: Partial<Packing> = {}): Promise<Buffer> {
  const codecs = pack && {
    [codec!]: (block: Buffer, done: (error: null, packed: Buffer) => void) => done(null, pack(block)),
  }
  // A type of avsc would forget the logical types.
  const options = { blockSize: 1_000, ...(codecs && { codec, codecs }) }
  const encoder = new avsc.streams.BlockEncoder(schema as never, options as never)
  for (const each of rows) encoder.write(each)
  encoder.end()
  return Buffer.concat(await encoder.toArray())
}

async function recordsIn(bytes: Buffer, chunkBytes: number) {
  const records = await Array.fromAsync(readAvroRecords(unpackedFile(bytes, { cuts: chunkBytes })))
  return records.map(({ raw, parsed }) => ({ line: raw.line, value: outcomeOf(parsed) }))
}
