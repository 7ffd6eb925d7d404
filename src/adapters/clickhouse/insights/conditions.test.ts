import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Condition, PropertyCondition } from '#core/insights/conditions.ts'
import type { JsonValue } from '#core/json.ts'
import { ConditionSql } from './condition-sql.ts'
import { buildTextAccess } from './property-access.ts'
import { buildPropertyTestSql } from './property-test.ts'
import { QueryParams } from './query-params.ts'

const nowMs = Date.UTC(2026, 0, 31, 12)
const context = { timezone: 'UTC', nowMs, readsFlagMap: false }
const property = (operator: string, value: JsonValue, over: Partial<PropertyCondition> = {}): PropertyCondition => ({
  ...{ kind: 'property', source: { kind: 'event' }, key: 'k', operator, value, matchingVersion: 2 },
  ...over,
})

function conditionSql() {
  const params = new QueryParams()
  return { params, conditions: new ConditionSql(context, params) }
}

describe('conditions in SQL', () => {
  it('are nested in the same way as the conditions of the request', () => {
    const all = (...conditions: Condition[]): Condition => ({ kind: 'all', conditions })
    const any = (...conditions: Condition[]): Condition => ({ kind: 'any', conditions })
    for (const [condition, expected] of [
      [all(), '1'],
      [any(), '0'],
      [all(any()), '(0)'],
      [any(all(), any()), '(1 OR 0)'],
      [all(all(), any(), all()), '(1 AND 0 AND 1)'],
      [{ kind: 'not', condition: all(any(), all()) }, 'NOT ((0 AND 1))'],
    ] as [Condition, string][])
      assert.equal(conditionSql().conditions.of(condition), expected)
    assert.throws(() => conditionSql().conditions.of({ kind: 'cohort', cohortId: 1, isMember: true, path: '' }))
  })

  it('join the person’s current row only if a condition needs it', () => {
    const persons: Condition = { kind: 'persons', personIds: [] }
    for (const [condition, needsPerson, expected] of [
      [persons, true, "(person IN (CAST([], 'Array(UUID)')))"],
      [property('exact', 'a'), false, null],
      [property('exact', 'a', { source: { kind: 'person' } }), false, null],
      [{ kind: 'person_today', condition: persons }, true, 'if(person_known, persons_0, 0)'],
    ] as [Condition, boolean, string | null][]) {
      const { conditions } = conditionSql()
      const sql = conditions.of(condition)
      if (expected !== null) assert.equal(sql, expected)
      assert.equal(conditions.needsPerson, needsPerson)
    }
  })

  it('test a property once, in the table that has it', () => {
    const { conditions } = conditionSql()
    const ofGroup = { source: { kind: 'group', groupTypeIndex: 3 } } as const
    conditions.of({
      kind: 'all',
      conditions: [
        property('exact', 'a'),
        property('exact', 'a'),
        property('exact', 'b'),
        property('exact', 'a', { matchingVersion: 1 }),
        property('exact', 'a', ofGroup),
        property('exact', 'a', { ...ofGroup, key: '$group_key' }),
        { kind: 'person_today', condition: property('is_set', null, { source: { kind: 'person_today' } }) },
      ],
    })
    const tests = [...conditions.tables].map(([name, columns]) => [
      name,
      columns.filter(column => column.includes('toUInt8(') && !column.includes('JSONType')).length,
    ])
    assert.deepEqual(tests, [
      ['events', 5],
      ['group_3', 1],
      ['persons', 1],
    ])
    for (const columns of conditions.tables.values()) assert.equal(new Set(columns).size, columns.length)
  })

  it('contain none of the caller’s text', () => {
    const hostile = `x') OR 1 = 1 -- {a:String} \\ " 🏴`
    const { conditions, params } = conditionSql()
    const values: [string, JsonValue][] = [
      ['exact', hostile],
      ['is_not', [hostile, 'b']],
      ['icontains', hostile],
      ['icontains_multi', [hostile]],
      ['starts_with', hostile],
      ['not_ends_with', hostile],
      ['regex', `${hostile.replaceAll(/[^a-z]/gi, '.')}'`],
      ['gt', hostile],
      ['is_date_before', hostile],
      ['is_set', hostile],
    ]
    for (const source of [
      { kind: 'event' },
      { kind: 'person' },
      { kind: 'flag' },
      { kind: 'group', groupTypeIndex: 0 },
    ] as const)
      for (const [operator, value] of values) conditions.of(property(operator, value, { source, key: hostile }))
    conditions.shown({ source: { kind: 'event' }, key: hostile })
    const text = JSON.stringify([...conditions.tables.values()]).toLowerCase()
    for (const piece of ['or 1 =', '{a:', '🏴', "x'"]) assert.ok(!text.includes(piece), piece)
    assert.ok(Object.values(params.values).includes(hostile))
  })
})

describe('bounds in SQL', () => {
  const sqlOf = (operator: string, value: JsonValue) => {
    const params = new QueryParams()
    const sql = buildPropertyTestSql(
      property(operator, value),
      buildTextAccess('t', '1', sql => sql),
      context,
      params,
    )
    return { sql, params: Object.values(params.values) }
  }

  it('write times with nine decimals of a second, even before 1970, and match nothing if the value is not a time', () => {
    for (const [value, expected] of [
      ['2026-01-31T12:00:00Z', 1_769_860_800_000_000_000n],
      ['2026-01-31T12:00:00.123456Z', 1_769_860_800_123_456_000n],
      ['2026-01-31T13:30:00+01:30', 1_769_860_800_000_000_000n],
      ['1970-01-01T00:00:00Z', 0n],
      ['1969-12-31T23:59:59.000001Z', -999_999_000n],
      ['-1d', 1_769_774_400_000_000_000n],
      ['no time', null],
      ['', null],
    ] as const) {
      const { sql } = sqlOf('is_date_before', value)
      if (expected === null) assert.equal(sql, 'if(1, toUInt8(0), 0)')
      else assert.ok(sql.includes(`< toInt128('${expected}')`), value)
    }
  })

  it('pass numbers as parameters, and match nothing if the value is not a number', () => {
    for (const [operator, value, expected] of [
      ['gt', 5, [5]],
      ['lte', '-1.5', [-1.5]],
      ['lt', 'a', []],
      ['between', [1, 2], [1, 2]],
      ['between', ['1', 1], [1]],
      ['between', [1], []],
      ['between', [1, 2, 3], []],
      ['between', [1, 'b'], []],
      ['between', 5, []],
      ['not_between', [2, 1], []],
    ] as const) {
      const { sql, params } = sqlOf(operator, value as JsonValue)
      assert.deepEqual(params, expected, `${operator} ${value}`)
      if (expected.length === 0) assert.match(sql, /^if\(1, toUInt8\(0\), [01]\)$/)
    }
  })
})
