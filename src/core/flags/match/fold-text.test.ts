import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type BooleanOrSteps, containsAny, containsText, toAsciiFoldedText, toFoldedText } from './fold-text.ts'

function answerOf(found: BooleanOrSteps): boolean {
  if (typeof found === 'boolean') return found
  for (;;) {
    const step = found.next()
    if (step.done === true) return step.value
  }
}

describe('case-folded texts', () => {
  it('are the same for a long text as for its parts', () => {
    for (const sample of ['Ab', 'AéÉb', 'ΣA', '\ud83d\ude00Zz', '\ud800A', 'ab', 'É']) {
      const long = sample.repeat(2_000)
      assert.equal(toAsciiFoldedText(long), toAsciiFoldedText(sample).repeat(2_000))
      assert.equal(toAsciiFoldedText(long), toAsciiFoldedText(long), 'the remembered result')
    }
    assert.equal(toFoldedText('İΣÉ'.repeat(2_000)), 'İΣÉ'.repeat(2_000).toLowerCase())
  })

  it('are never shorter than the original text', () => {
    for (let code = 0; code <= 0x10ffff; code++) {
      const char = String.fromCodePoint(code)
      assert.ok(char.toLowerCase().length >= char.length, code.toString(16))
    }
  })
})

describe('containsText', () => {
  it('finds long search texts in long texts wherever the regular expression engine finds them', () => {
    const letters = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 130, maxLength: 200 })
    fc.assert(
      fc.property(letters, fc.nat(20), fc.boolean(), (piece, cut, isIn) => {
        const text = piece.repeat(100)
        const part = piece.repeat(9).slice(cut) + piece.slice(0, cut + 1) + (isIn ? '' : 'c')
        assert.ok(text.length * part.length > 1_000_000)
        assert.equal(answerOf(containsText(text, part)), text.includes(part))
      }),
      { numRuns: 50 },
    )
    const nearly = `${'a'.repeat(1_000)}b${'a'.repeat(1_000)}`
    assert.equal(answerOf(containsText('a'.repeat(100_000), nearly)), false)
    assert.equal(answerOf(containsText('a'.repeat(100_000) + nearly, nearly)), true)
    const across = 'a'.repeat(256 * 1024 - 500) + nearly
    assert.equal(answerOf(containsText(`${across}c`, nearly)), true, 'from one step to the next')
    assert.equal(answerOf(containsText('a'.repeat(5_000), 'a'.repeat(5_001))), false)
  })

  it('answers at once for a few search texts, and in steps for many', () => {
    const parts = Array.from({ length: 1_000 }, (_, index) => `part-${index}.`)
    assert.equal(containsAny('a part-7.', parts), true)
    assert.equal(containsAny('no part', parts), false)
    for (const last of ['part-999.', '']) {
      const steps = containsAny('x'.repeat(10_000) + last, parts)
      assert.ok(typeof steps === 'object')
      let stepCount = 0
      let step = steps.next()
      for (; step.done !== true; step = steps.next()) stepCount++
      assert.ok(stepCount > 10)
      assert.equal(step.value, last !== '')
    }
  })
})
