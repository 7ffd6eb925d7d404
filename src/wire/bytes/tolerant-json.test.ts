import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isRawNumber } from '#core/json.ts'
import { parseTolerantJson } from './tolerant-json.ts'

describe('parseTolerantJson', () => {
  it('reads JSON5, and reads NaN and Infinity as null', () => {
    const text = `\ufeff// hello
      {token: 'a\\x41\\u0042\\
c', "b": [1, .5, 5., +7, -0x10, 1e3,], /* more */ 'c': {d: NaN, e: -Infinity, $f_1: null, ü: true,},}`
    const value = parseTolerantJson(text) as Record<string, unknown>
    const list = (value.b as unknown[]).map(entry => (isRawNumber(entry) ? entry.rawJSON : entry))
    assert.deepEqual(
      { ...value, b: list },
      {
        token: 'aABc',
        b: [1, 0.5, 5, 7, -16, '1e3'],
        c: { d: null, e: null, $f_1: null, ü: true },
      },
    )
  })

  it('returns the same as JSON.parse for any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), value => {
        const text = JSON.stringify(value)
        assert.equal(JSON.stringify(parseTolerantJson(text)), text)
      }),
    )
  })

  it('refuses text that is neither JSON nor JSON5, however deep or long', () => {
    const bad = [
      '',
      '{',
      '[1',
      '{a}',
      '{"a":}',
      '[,]',
      'tru',
      '01',
      '"a',
      "'a\n'",
      '1 2',
      '{"a":1 "b":2}',
      '"\\1"',
      '/*',
    ]
    for (const text of [...bad, '['.repeat(5_000), `"${'a'.repeat(200_000)}"`]) {
      assert.throws(() => parseTolerantJson(text), SyntaxError, text.slice(0, 20))
    }
  })

  it('reads __proto__ as an own key', () => {
    const value = parseTolerantJson('{__proto__: {polluted: 1}}') as object
    assert.ok(Object.hasOwn(value, '__proto__'))
    assert.equal(({} as { polluted?: number }).polluted, undefined)
  })
})
