import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isLinear } from '../../../../tests/support/cpu-time.ts'
import { parseFloatText } from './float-text.ts'

describe('parseFloatText', () => {
  it('reads what Rust reads as a float, and nothing else', () => {
    const numbers: [string, number | null][] = [
      ['1', 1],
      ['1.', 1],
      ['.5', 0.5],
      ['-1.5e3', -1500],
      ['+2E-1', 0.2],
      ['007', 7],
      ['inf', Number.POSITIVE_INFINITY],
      ['-Infinity', Number.NEGATIVE_INFINITY],
      ['.', null],
      ['', null],
      [' 1', null],
      ['1_000', null],
      ['0x10', null],
      ['1.2.3', null],
    ]
    for (const [text, number] of numbers) assert.equal(parseFloatText(text), number, text)
    assert.ok(Number.isNaN(parseFloatText('NaN')))
  })

  it('refuses long runs of digits in time', () => {
    for (const start of ['', '1.', '1e']) {
      const refuse = (times: number) => {
        const text = `${start}${'0'.repeat(4_000 * times)}x`
        return () => assert.equal(parseFloatText(text), null)
      }
      assert.ok(isLinear(refuse), start)
    }
  })
})
