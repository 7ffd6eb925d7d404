import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { unpackHadoopLz4, unpackLz4 } from './lz4-block.ts'

/** `ab` as literals, then eight bytes from two back, then `c`. */
const block = Uint8Array.from([0x24, 0x61, 0x62, 2, 0, 0x10, 0x63])

describe('a block of LZ4', () => {
  it('is unpacked, also if a match overlaps its own output', () => {
    assert.equal(Buffer.from(unpackLz4(block, 11)).toString(), 'ababababab' + 'c')
  })

  it('may have lengths of more than fifteen, in further bytes', () => {
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
    assert.equal(
      Buffer.from(unpackHadoopLz4(Uint8Array.from([...frame, ...frame]), 22)).toString(),
      'abababababc'.repeat(2),
    )
    assert.equal(Buffer.from(unpackHadoopLz4(block, 11)).toString(), 'abababababc')
  })
})
