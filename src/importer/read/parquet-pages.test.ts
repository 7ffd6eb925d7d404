import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AsyncBuffer, RowGroup } from 'hyparquet'
import { zigzag } from '../../../tests/support/reading.ts'
import { checkColumnPages } from './parquet-pages.ts'
import { unpackHadoopLz4, unpackLz4 } from './parquet-records.ts'

describe('the page of a Parquet file', () => {
  it('that claims an implausible uncompressed size is refused before memory is allocated', async () => {
    await assert.rejects(
      checkColumnPages(...column({ packed: 1_000, unpacked: 2 ** 31 - 1, values: 10 })),
      /^Error: a page of 1000 bytes claims to unpack to 2147483647$/,
    )
    await checkColumnPages(...column({ packed: 1_000, unpacked: 64 * 2 ** 20, values: 10 }))
    await checkColumnPages(...column({ packed: 100_000, unpacked: 100_000 * 1_032, values: 10 }))
    await assert.rejects(checkColumnPages(...column({ packed: 100_000, unpacked: 100_000 * 1_033, values: 10 })))
  })

  it('that claims an implausible number of values is refused', async () => {
    await assert.rejects(
      checkColumnPages(...column({ packed: 20, unpacked: 20, values: 2 ** 31 - 1 })),
      /^Error: a page of 20 bytes claims to hold 2147483647 values$/,
    )
    // A million rows without a value.
    await checkColumnPages(...column({ packed: 20, unpacked: 20, values: 2 ** 20 }))
    await checkColumnPages(...column({ packed: 4 * 2 ** 20, unpacked: 4 * 2 ** 20, values: 32 * 2 ** 20 }))
  })
})

/** `ab` as literals, then eight bytes from two back, then `c`. */
const block = Uint8Array.from([0x24, 0x61, 0x62, 2, 0, 0x10, 0x63])

describe('an LZ4 block', () => {
  it('is decompressed, even if a match overlaps its own output', () => {
    assert.equal(Buffer.from(unpackLz4(block, 11)).toString(), 'ababababab' + 'c')
  })

  it('may have lengths above fifteen, which continue in further bytes', () => {
    const literals = Buffer.from('x'.repeat(300))
    const long = Uint8Array.from([0xff, 255, 30, ...literals, 44, 1, 255, 0])
    assert.equal(unpackLz4(long, 300 + 15 + 255 + 4).length, 574)
    assert.ok(unpackLz4(long, 574).every(byte => byte === 0x78))
  })

  it('may be empty', () => {
    assert.equal(unpackLz4(new Uint8Array(), 0).length, 0)
  })

  it('that is damaged is refused', () => {
    const wrong = [block.subarray(0, 6), block.subarray(0, 2), Uint8Array.from([0x24, 0x61, 0x62, 3, 0, 0x10, 0x63])]
    for (const bytes of wrong) assert.throws(() => unpackLz4(bytes, 11), RangeError)
    for (const bytes of [10, 12]) assert.throws(() => unpackLz4(block, bytes), RangeError)
  })

  it('may be in one or more Hadoop frames, or in none', () => {
    const frame = [0, 0, 0, 11, 0, 0, 0, block.length, ...block]
    const twice = unpackHadoopLz4(Uint8Array.from([...frame, ...frame]), 22)
    assert.equal(Buffer.from(twice).toString(), 'abababababc'.repeat(2))
    assert.equal(Buffer.from(unpackHadoopLz4(block, 11)).toString(), 'abababababc')
  })
})

interface Page {
  readonly packed: number
  readonly unpacked: number
  readonly values: number
}

/** A column of one page, with the same counts and sizes as the page. */
function column({ packed, unpacked, values }: Page): [AsyncBuffer, RowGroup] {
  const page = [...field(5, 0), ...field(5, unpacked), ...field(5, packed), 0x2c]
  const header = [...page, ...field(5, values), ...field(5, 0), ...field(5, 3), ...field(5, 3), 0, 0]
  const bytes = Uint8Array.from([...header, ...Array<number>(packed).fill(0)])
  const meta_data = {
    path_in_schema: ['n'],
    codec: 'SNAPPY',
    num_values: BigInt(values),
    total_compressed_size: BigInt(bytes.length),
    total_uncompressed_size: BigInt(header.length + unpacked),
    data_page_offset: 0n,
  }
  const file: AsyncBuffer = { byteLength: bytes.length, slice: (start, end) => bytes.buffer.slice(start, end) }
  return [file, { columns: [{ meta_data }], num_rows: BigInt(values) } as unknown as RowGroup]
}

/** The next field of a structure in Thrift's compact protocol. */
function field(type: number, value: number): number[] {
  return [0x10 | type, ...zigzag(value)]
}
