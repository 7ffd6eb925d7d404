import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isLinear } from '../../../../tests/support/cpu-time.ts'
import { parseFloatText } from './float-text.ts'

it('parseFloatText returns nothing for a text without a digit', () => {
  for (const text of ['.', '', '-', '+.', '.e1']) assert.equal(parseFloatText(text), null, text)
})

// What else counts as a number is in the flag vectors, which `tests/conformance` runs.
it('parseFloatText quickly refuses long runs of digits', () => {
  for (const start of ['', '1.', '1e']) {
    const refuse = (times: number) => {
      const text = `${start}${'0'.repeat(4_000 * times)}x`
      return () => assert.equal(parseFloatText(text), null)
    }
    assert.ok(isLinear(refuse), start)
  }
})
