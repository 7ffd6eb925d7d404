import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { crc32, deflateRawSync, zstdCompressSync } from 'node:zlib'
import avsc from 'avsc'
import { readAvroRecords } from './avro-records.ts'
import { ByteReader } from './byte-reader.ts'

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
  id: 7,
  user: 'ü-1',
  at: '2024-05-01T12:00:00.123456Z',
  seen: '1969-12-31T23:59:59.999',
  day: '2024-05-01',
  price: '-1.23',
  kind: 'click',
  tags: ['a', 'b'],
  more: { a: 1.5, b: null, c: true },
  key: 'k1',
  share: 0.1,
  parent: null,
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

  it('has a reject for a record that nests too deeply', async () => {
    const nested = (depth: number) => {
      let parent: typeof row | null = null
      for (let left = depth; left > 0; left--) parent = { ...row, parent } as typeof row
      return parent!
    }
    // The list in the innermost record is one more level.
    const records = await recordsIn(await written([nested(499), nested(500), nested(1)]), 1_000_000)
    const outcomes = records.map(({ value }) => (typeof value === 'string' ? value : 'read'))
    assert.deepEqual(outcomes, ['read', 'json_syntax', 'read'])
  })

  it('keeps the digits of 64-bit integers', async () => {
    const long = avsc.types.LongType.__with({
      fromBuffer: (bytes: Buffer) => bytes.readBigInt64LE(),
      toBuffer: (value: bigint) => {
        const bytes = Buffer.alloc(8)
        bytes.writeBigInt64LE(value)
        return bytes
      },
      fromJSON: BigInt,
      toJSON: String,
      isValid: (value: unknown) => typeof value === 'bigint',
      compare: (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0),
    } as never)
    const type = avsc.Type.forSchema(
      { type: 'record', name: 'Ids', fields: [{ name: 'id', type: 'long' }] },
      { registry: { long } },
    )
    const bytes = await encoded(type, [{ id: 7325461098234567891n }, { id: -9223372036854775808n }])
    const texts = (await Array.fromAsync(readAvroRecords(file(bytes, 100)))).map(each =>
      Buffer.from(each.bytes).toString(),
    )
    assert.deepEqual(texts, ['{"id":7325461098234567891}', '{"id":-9223372036854775808}'])
  })

  const codecs: Readonly<Record<string, (block: Buffer) => Buffer>> = {
    deflate: block => deflateRawSync(block),
    zstandard: block => zstdCompressSync(block),
    snappy: block => withSum(literalsOnly(block), block),
  }
  for (const [codec, pack] of Object.entries(codecs))
    it(`is read with the codec ${codec}`, async () => {
      assert.deepEqual(await recordsIn(await written([row, row], { codec, pack }), 100), [
        { line: 1, value: read },
        { line: 2, value: read },
      ])
    })

  it('that is cut off or damaged is read up to that point, with one reject', async () => {
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
    const claims: readonly [type: object, values: readonly number[], said: RegExp | object][] = [
      [decimal(2), [64, ...Array<number>(64).fill(0)], { it: '0.00' }],
      [decimal(2), [65, ...Array<number>(65).fill(0)], /a decimal has 65 bytes, more than the limit of 64/],
      [decimal(-1_000), [1, 1], { it: `2${'0'.repeat(1_000)}` }],
      [decimal(3e8), [1, 1], /a decimal has the scale 300000000, more than the limit of 1000/],
      [decimal(-3e8), [1, 1], /a decimal has the scale -300000000, /],
      [decimal('many'), [1, 1], /a decimal has the scale NaN, /],
      // Neither takes any bytes of the block, so there could be any number of such records.
      [fixed(0.001), [1], /a value is longer than what holds it/],
      [fixed('many'), [1], /a value is longer than what holds it/],
    ]
    for (const [type, values, said] of claims) {
      const [first] = await Array.fromAsync(readAvroRecords(file(container(type, [[1, values]]), 1_000)))
      const { parsed } = first!
      if (said instanceof RegExp) assert.match(('rejected' in parsed && parsed.rejected.detail) || 'none', said)
      else assert.deepEqual('value' in parsed && parsed.value, said)
    }
  })

  describe('of records that take no bytes', () => {
    const nothing = { type: 'record', name: 'Nothing', fields: [{ name: 'no', type: 'null' }] }
    const lists = { type: 'record', name: 'Lists', fields: [{ name: 'all', type: { type: 'array', items: nothing } }] }
    const name = 'n'.repeat(1_000)
    const longName = { type: 'record', name: 'LongName', fields: [{ name, type: 'null' }] }
    const longNames = { ...lists, fields: [{ name: 'all', type: { type: 'array', items: longName } }] }
    const symbol = { type: 'enum', name: 'Symbol', symbols: [name] }
    const longSymbols = { ...lists, fields: [{ name: 'all', type: { type: 'array', items: symbol } }] }
    const damageOf = async (bytes: Buffer) => {
      const records = await Array.fromAsync(readAvroRecords(file(bytes, 1_000)))
      const last = records.at(-1)!.parsed
      return { before: records.length - 1, said: 'rejected' in last ? last.rejected.detail : null }
    }

    it('contains them, also in lists and in an empty block', async () => {
      assert.deepEqual(await recordsIn(container(nothing, [[2, []]]), 100), [
        { line: 1, value: { no: null } },
        { line: 2, value: { no: null } },
      ])
      assert.deepEqual(await recordsIn(container(lists, [[1, [5, 0]]]), 100), [
        { line: 1, value: { all: Array.from({ length: 5 }, () => ({ no: null })) } },
      ])
    })

    it('is damaged if it claims an implausible number of them', async () => {
      const tooMany = { before: 100_000, said: /it claims more than 100000 records that take no bytes/ }
      const claims: readonly [Buffer, { readonly before: number; readonly said: RegExp }][] = [
        [container(nothing, [[2 ** 40, []]]), { before: 0, said: /a block claims to have 1099511627776 records/ }],
        [container(nothing, [[60_000_000, [0]]]), tooMany],
        [
          container(
            nothing,
            Array.from({ length: 20 }, () => [10_000, []]),
          ),
          tooMany,
        ],
        [container(lists, [[1, [2 ** 40, 0]]]), { before: 0, said: /a record claims more than 1000000 values/ }],
        // Each list is within the limit, but not all of them together.
        [
          container(lists, [[1, [...Array.from({ length: 200 }, () => 10_000), 0]]]),
          { before: 0, said: /a record claims more than 1000000 values/ },
        ],
        [
          container(longNames, [[1, [400_000, 0]]]),
          { before: 0, said: /a record repeats more than 67108864 bytes of names/ },
        ],
        [
          container(longSymbols, [[1, [400_000, ...Array<number>(400_000).fill(0), 0]]]),
          { before: 0, said: /a record repeats more than 67108864 bytes of names/ },
        ],
        [container(lists, [[2, [5, 0]]]), { before: 1, said: /a block has fewer records than it says/ }],
      ]
      for (const [bytes, { before, said }] of claims) {
        const found = await damageOf(bytes)
        assert.equal(found.before, before)
        assert.match(found.said ?? '', said)
      }
    })
  })
})

/** A container file of blocks, whose records are given as the integers to encode. */
function container(type: object, blocks: readonly (readonly [count: number, values: readonly number[]])[]): Buffer {
  const sync = Buffer.alloc(16, 7)
  const text = (value: string) => Buffer.concat([long(Buffer.byteLength(value)), Buffer.from(value)])
  const header = [Buffer.from('Obj\x01'), long(1), text('avro.schema'), text(JSON.stringify(type)), long(0), sync]
  const bodies = blocks.map(([count, values]) => {
    const body = Buffer.concat(values.map(long))
    return Buffer.concat([long(count), long(body.length), body, sync])
  })
  return Buffer.concat([...header, ...bodies])
}

/** Encodes a number that is not negative. */
function long(value: number): Buffer {
  const bytes: number[] = []
  let left = BigInt(value) * 2n
  for (; left > 0x7fn; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(left)])
}

interface Packing {
  readonly codec: string
  readonly pack: (block: Buffer) => Buffer
}

function written(rows: readonly object[], packing?: Packing): Promise<Buffer> {
  // A type of avsc would forget the logical types.
  return encoded(schema as never, rows, packing)
}

async function encoded(type: avsc.Type | avsc.Schema, rows: readonly object[], packing?: Packing): Promise<Buffer> {
  const { codec = 'null', pack } = packing ?? {}
  const codecs = { [codec]: (block: Buffer, done: (error: null, packed: Buffer) => void) => done(null, pack!(block)) }
  const encoder = new avsc.streams.BlockEncoder(
    type as avsc.Schema,
    {
      blockSize: 1_000,
      codec,
      ...(pack !== undefined && { codecs }),
    } as never,
  )
  const parts: Buffer[] = []
  encoder.on('data', part => parts.push(part))
  for (const each of rows) encoder.write(each)
  encoder.end()
  await once(encoder, 'end')
  return Buffer.concat(parts)
}

async function recordsIn(bytes: Buffer, chunk: number) {
  const records = await Array.fromAsync(readAvroRecords(file(bytes, chunk)))
  return records.map(({ raw, parsed }) => ({
    line: raw.line,
    value: 'value' in parsed ? parsed.value : 'rejected' in parsed ? parsed.rejected.reason : parsed.skipped,
  }))
}

function file(bytes: Buffer, chunk: number) {
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk)
  }
  return { object: 'file', bytes: new ByteReader(chunks()), damage: () => null, isUnpackedFile: true }
}

/** Snappy's encoding of bytes without repetition: the length, then literals of at most 60. */
function literalsOnly(block: Buffer): Buffer {
  const length: number[] = []
  for (let left = block.length; ; left >>= 7) {
    length.push(left > 0x7f ? (left & 0x7f) | 0x80 : left)
    if (left <= 0x7f) break
  }
  const parts: Buffer[] = [Buffer.from(length)]
  for (let at = 0; at < block.length; at += 60) {
    const literal = block.subarray(at, at + 60)
    parts.push(Buffer.from([(literal.length - 1) << 2]), literal)
  }
  return Buffer.concat(parts)
}

function withSum(packed: Buffer, block: Buffer): Buffer {
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(block))
  return Buffer.concat([packed, sum])
}
