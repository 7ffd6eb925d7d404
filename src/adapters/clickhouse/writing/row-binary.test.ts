import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RowBinaryWriter } from './row-binary.ts'

const hexOf = (write: (to: RowBinaryWriter) => void) => {
  const writer = new RowBinaryWriter(8)
  write(writer)
  return writer.written().toString('hex')
}

describe('RowBinaryWriter', () => {
  it('writes a UUID as two little-endian halves, and nothing for text that is not a UUID', () => {
    assert.equal(
      hexOf(to => to.uuid('00112233-4455-6677-8899-AABBccddeeff')),
      '7766554433221100ffeeddccbbaa9988',
    )
    for (const text of [
      '',
      '00112233-4455-6677-8899-aabbccddeef',
      '00112233-4455-6677-8899-aabbccddeefg',
      '00112233x4455-6677-8899-aabbccddeeff',
      '00112233-4455-6677-8899-aabbccddeeé0',
    ]) {
      assert.equal(
        hexOf(to => assert.equal(to.uuid(text), false)),
        '',
      )
    }
  })

  it('writes 64-bit integers, including negative ones, and ones above 2^53 given as two 32-bit words', () => {
    for (const [value, highWord] of [
      [0, 0],
      [1, 0],
      [-1, 0],
      [-2_208_988_800_000_000, 0],
      [10_413_791_999_999_000, 0],
      [1_795_000_000_000, 2 ** 30],
    ] as const) {
      const expected = Buffer.alloc(8)
      expected.writeBigInt64LE(BigInt(value) + (BigInt(highWord) << 32n))
      assert.equal(
        hexOf(to => to.int64(value, highWord)),
        expected.toString('hex'),
        String(value),
      )
    }
  })

  it('writes the byte length of a text before the text, even if its first estimate of the length was wrong', () => {
    for (const unit of ['a', 'é', '漢', '🏴', '\u0000']) {
      for (const count of [0, 1, 23, 24, 42, 43, 63, 64, 127, 128, 129, 5461, 5462, 8191, 8192, 16383, 16384, 70_000]) {
        const text = unit.repeat(count)
        const bytes = Buffer.from(text)
        const written = hexOf(to => to.text(text))
        assert.equal(written, varint(bytes.length) + bytes.toString('hex'), `${unit} × ${count}`)
      }
    }
  })

  it('writes a lone surrogate as U+FFFD', () => {
    assert.equal(
      hexOf(to => to.text('\ud800')),
      '03efbfbd',
    )
  })

  it('writes maps, even over bytes that a truncation has discarded', () => {
    const map = new Map([['flag', 'on']])
    assert.equal(
      hexOf(to => {
        to.uint32(7)
        const start = to.byteLength
        to.text('x'.repeat(1000))
        to.truncate(start)
        to.map(map)
        to.uint8(255)
      }),
      `07000000${'01'}04${Buffer.from('flag').toString('hex')}02${Buffer.from('on').toString('hex')}ff`,
    )
  })
})

function varint(value: number): string {
  const bytes: number[] = []
  let rest = value
  while (rest > 127) {
    bytes.push((rest & 127) | 128)
    rest >>>= 7
  }
  return Buffer.from([...bytes, rest]).toString('hex')
}
