import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { compilePropertyMatch } from './match-property.ts'

const settings = { timezone: 'UTC', propertyMatchingVersion: 1 } as const

// What each operator matches is in the flag vectors, which `tests/conformance` runs.
describe('operators of filters', () => {
  it('are not found under names that every object inherits', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'EXACT', '']) {
      assert.equal(compilePropertyMatch(name, 'a', settings), null)
    }
  })

  it('say why a pattern can never match', () => {
    const compiled = compilePropertyMatch('regex', '(?=a)', settings)
    assert.match(compiled?.problem ?? '', /look-ahead/)
  })

  it('check the elapsed time before they search a long text with a pattern', () => {
    for (const [operator, wanted] of [
      ['regex', true],
      ['not_regex', false],
    ] as const) {
      const answer = compilePropertyMatch(operator, '^.{1,1000}$', settings)!.matches('a'.repeat(900), 0)
      assert.ok(typeof answer === 'object')
      assert.deepEqual(answer.next(), { done: false, value: undefined })
      assert.deepEqual(answer.next(), { done: true, value: wanted })
    }
  })
})
