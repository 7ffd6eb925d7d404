import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { sha1Top60 } from './sha1.ts'

/** The integer of the first 15 hex digits, rounded once by BigInt. */
const expectedTop60 = (text: string) =>
  Number(BigInt(`0x${createHash('sha1').update(text, 'utf8').digest('hex').slice(0, 15)}`))

describe('sha1Top60', () => {
  it('returns the same as node:crypto for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), text => {
        assert.equal(sha1Top60(text), expectedTop60(text))
      }),
    )
  })

  it('returns the same as node:crypto for every length around the block borders, in ASCII and in other text', () => {
    for (let length = 0; length <= 200; length++) {
      for (const unit of ['x', 'é', '😀'])
        assert.equal(sha1Top60(unit.repeat(length)), expectedTop60(unit.repeat(length)))
    }
  })

  it('reads a lone surrogate as U+FFFD', () => {
    assert.equal(sha1Top60('a\ud800b'), expectedTop60('a\ufffdb'))
  })

  it('accepts a text in parts', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ maxLength: 30 }), { minLength: 4, maxLength: 4 }), parts => {
        assert.equal(sha1Top60(...(parts as [string, string, string, string])), expectedTop60(parts.join('')))
      }),
    )
  })
})
