import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonValue, parseJson } from '../../json.ts'
import { compileMatch, operatorNames } from './match-property.ts'

const nowMs = Date.parse('2026-01-15T12:00:00Z')

function matches(operator: string, filter: JsonValue, value: JsonValue | undefined, version: 1 | 2 = 1): boolean {
  const compiled = compileMatch(operator, filter, { timezone: 'UTC', propertyMatchingVersion: version })
  assert.ok(compiled !== null, operator)
  const answer = value === undefined ? compiled.whenAbsent : compiled.matches(value, nowMs)
  return typeof answer === 'boolean' ? answer : answer.next().value === true
}

/** Operator, filter and property as JSON text (so that `1.0` stays `1.0`), and the answer. */
const rows: [string, string, string, boolean][] = [
  ['exact', '"a"', '"A"', true],
  ['exact', '"É"', '"é"', true],
  ['exact', '"1.0"', '1.0', true],
  ['exact', '"1"', '1.0', false],
  ['exact', '1.50', '"1.5"', true],
  ['exact', '12345678901234567890', '"12345678901234567890"', true],
  ['exact', '["a", 2]', '2', true],
  ['exact', '{"b": 1, "a": [2]}', '"{\\"a\\":[2],\\"b\\":1}"', true],
  ['exact', '"false"', '"banana"', true],
  ['exact', '"false"', 'null', true],
  ['exact', '"strasse"', '"Straße"', false],
  ['is_not', '"a"', '"A"', false],
  ['is_not', '["a","b"]', '"c"', true],
  ['icontains', '"É"', '"CAFÉ"', true],
  ['icontains', '"é"', '"CAFÉ"', false],
  ['not_icontains', '"x"', '"axb"', false],
  ['icontains_multi', '"foo"', '"a FOO b"', true],
  ['not_icontains_multi', '["a","b"]', '"cab"', false],
  ['starts_with', '"ab"', '"ABC"', true],
  ['not_starts_with', '"ab"', '"ABC"', false],
  ['ends_with', '"bc"', '"ABC"', true],
  ['not_ends_with', '"bc"', '"ABD"', true],
  ['regex', '"^\\\\d+$"', '42', true],
  ['not_regex', '"^\\\\d+$"', '42', false],
  ['regex', '"(a"', '"(a"', false],
  ['not_regex', '"(a"', '"b"', false],
  ['gt', '"9"', '"10"', true],
  ['gt', '10', 'true', false],
  ['gt', '1', '" 2"', false],
  ['gte', '"1e3"', '1000', true],
  ['lt', '"inf"', '1e300', true],
  ['lt', '5', '"nan"', false],
  ['lte', '5', '"0x4"', false],
  ['between', '[1, 3]', '"3"', true],
  ['between', '[3, 1]', '2', false],
  ['not_between', '[1, 3]', '4', true],
  ['not_between', '[3, 1]', '2', false],
  ['not_between', '[1, 3]', '"nan"', false],
  ['is_set', 'null', 'null', true],
  ['is_not_set', 'null', 'null', false],
  ['exact', 'null', '"a"', false],
  ['is_not', 'null', '"a"', false],
  ['in', '1', '1', false],
  ['not_in', '1', '1', false],
  ['flag_evaluates_to', 'true', 'true', false],
  ['is_date_before', '"-7d"', '"2026-01-08T11:59:59Z"', true],
  ['is_date_after', '"7d"', '"2026-01-08T11:59:59Z"', false],
  ['is_date_exact', '"2026-01-01"', '1767225600', true],
  ['is_date_before', '20260101', '"2020-01-01"', false],
]

describe('operators', () => {
  for (const [operator, filter, value, expected] of rows) {
    it(`${value} ${operator} ${filter} is ${expected}`, () => {
      assert.equal(matches(operator, parseJson(filter), parseJson(value)), expected)
    })
  }

  it('match an absent property only for seven negative operators and is_not_set', () => {
    const value: Record<string, JsonValue> = { between: [1, 2], not_between: [1, 2], regex: 'a', not_regex: 'a' }
    const trueWhenAbsent = operatorNames.filter(name => matches(name, value[name] ?? '1', undefined))
    assert.deepEqual(trueWhenAbsent.sort(), [
      'is_not',
      'is_not_set',
      'not_between',
      'not_ends_with',
      'not_icontains',
      'not_icontains_multi',
      'not_regex',
      'not_starts_with',
    ])
  })

  it('never match a filter without a value, absent properties included', () => {
    for (const name of operatorNames) {
      if (name === 'is_set' || name === 'is_not_set') continue
      assert.equal(matches(name, null, undefined), false, name)
    }
  })

  it('compare boolean-like values in version 1, and only the empty list in version 2', () => {
    assert.equal(matches('exact', ['TRUE'], true), true)
    assert.equal(matches('exact', ['true', 'false'], 'true'), false)
    assert.equal(matches('exact', ['true', 'false'], 'true', 2), true)
    assert.equal(matches('exact', 'false', 'banana', 2), false)
    assert.equal(matches('exact', [], true, 2), true)
    assert.equal(matches('exact', [], 'x', 2), false)
  })

  it('do not exist under names that every object has', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'EXACT', '']) {
      assert.equal(compileMatch(name, 'a', { timezone: 'UTC', propertyMatchingVersion: 1 }), null)
    }
  })

  it('say why a pattern can never match', () => {
    const compiled = compileMatch('regex', '(?=a)', { timezone: 'UTC', propertyMatchingVersion: 1 })
    assert.match(compiled?.problem ?? '', /look-ahead/)
  })

  it('check the time before a pattern searches a long text', () => {
    const settings = { timezone: 'UTC', propertyMatchingVersion: 1 } as const
    for (const [operator, wanted] of [
      ['regex', true],
      ['not_regex', false],
    ] as const) {
      const answer = compileMatch(operator, '^.{1,1000}$', settings)!.matches('a'.repeat(900), nowMs)
      assert.ok(typeof answer === 'object')
      assert.deepEqual(answer.next(), { done: false, value: undefined })
      assert.deepEqual(answer.next(), { done: true, value: wanted })
    }
  })
})
