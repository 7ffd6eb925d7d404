import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Condition } from '#core/insights/conditions.ts'
import type { JsonValue } from '#core/json.ts'
import { readFilterConditions } from './property-filters.ts'
import { QueryFields } from './query-fields.ts'

const read = (properties: JsonValue) =>
  QueryFields.read({ properties }, 'query', fields => readFilterConditions(fields, 'properties', { count: 0 }))

/** Operators and values with `|` for any, `&` for all and `!` for not. */
function shown(condition: Condition): string {
  if (condition.kind === 'property') return `${condition.operator} ${JSON.stringify(condition.value)}`
  if (condition.kind === 'not') return `!(${shown(condition.condition)})`
  assert.ok(condition.kind === 'all' || condition.kind === 'any')
  return `(${condition.conditions.map(shown).join(condition.kind === 'all' ? ' & ' : ' | ')})`
}

function shownFilter(filter: object): string {
  const condition = read([{ key: 'plan', ...filter } as JsonValue])
  assert.ok(condition.ok, JSON.stringify(condition))
  assert.ok(condition.value.kind === 'all')
  return condition.value.conditions.map(shown).join(' ')
}

describe('readFilterConditions', () => {
  it('reads a list as a match of any of its values, or of none with a negating operator', () => {
    const cases: [operator: string, value: JsonValue, expected: string][] = [
      ['exact', ['a', 'b'], 'exact ["a","b"]'],
      ['is_not', ['a', 'b'], 'is_not ["a","b"]'],
      ['icontains', ['a', 'b'], 'icontains_multi ["a","b"]'],
      ['not_icontains', ['a', 'b'], 'not_icontains_multi ["a","b"]'],
      ['icontains_multi', ['a', 'b'], 'icontains_multi ["a","b"]'],
      ['between', [1, 2], 'between [1,2]'],
      ['not_between', [1, 2], 'not_between [1,2]'],
      ['icontains', ['a'], 'icontains_multi ["a"]'],
      ['regex', ['a', 'b'], '(regex "a" | regex "b")'],
      ['not_regex', ['a', 'b'], '(not_regex "a" & not_regex "b")'],
      ['starts_with', ['a', 'b'], '(starts_with "a" | starts_with "b")'],
      ['not_ends_with', ['a'], '(not_ends_with "a")'],
      ['gt', [1, 5], '(gt 1 | gt 5)'],
      ['is_date_before', ['-7d'], '(is_date_before "-7d")'],
      ['semver_neq', ['1.0.0', '2.0.0'], '(semver_neq "1.0.0" & semver_neq "2.0.0")'],
      ['is_set', [], 'is_set []'],
    ]
    for (const [operator, value, expected] of cases) assert.equal(shownFilter({ operator, value }), expected)
    assert.equal(shownFilter({ operator: 'regex', value: ['a', 'b'], negation: true }), '!((regex "a" | regex "b"))')
  })

  it('counts the values of a list that become separate filters', () => {
    const list = (count: number) =>
      read([{ key: 'a', operator: 'regex', value: Array.from({ length: count }, () => 'b') }])
    assert.equal(list(100).ok, true)
    const refused = list(101)
    assert.equal(refused.ok || refused.error.attr, 'query.properties.0')
  })

  it('refuses an empty list, which PostHog ignores and flags evaluate as true', () => {
    const refused = read([{ key: 'plan', value: [] }])
    assert.equal(refused.ok || refused.error.attr, 'query.properties.0.value')
  })

  it('reads an empty group as the absence of a filter', () => {
    for (const type of ['AND', 'OR']) {
      const condition = read({ type, values: [] })
      assert.ok(condition.ok)
      assert.deepEqual(condition.value, { kind: 'all', conditions: [] })
    }
  })
})
