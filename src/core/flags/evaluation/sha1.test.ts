import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { sha1Hex, sha1Top60 } from './sha1.ts'

const expectedHex = (text: string) => createHash('sha1').update(text, 'utf8').digest('hex')

describe('sha1', () => {
  it('agrees with node:crypto for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), text => {
        assert.equal(sha1Hex(text), expectedHex(text))
      }),
    )
  })

  it('agrees for every length around the block borders, ASCII and not', () => {
    for (let length = 0; length <= 200; length++) {
      for (const unit of ['x', 'é', '😀']) assert.equal(sha1Hex(unit.repeat(length)), expectedHex(unit.repeat(length)))
    }
  })

  it('reads a lone surrogate as U+FFFD', () => {
    assert.equal(sha1Hex('a\ud800b'), expectedHex('a\ufffdb'))
  })

  it('gives the first 60 bits as the double that the integer rounds to', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 80 }), text => {
        assert.equal(sha1Top60(text), Number(BigInt(`0x${expectedHex(text).slice(0, 15)}`)))
      }),
    )
  })
})
