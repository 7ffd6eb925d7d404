import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Condition, PropertyCondition } from '#core/insights/conditions.ts'
import type { JsonValue } from '#core/json.ts'
import { ConditionSql, type Decided } from './condition-sql.ts'
import { accessText } from './property-access.ts'
import { compilePropertyTest, matchesResidual } from './property-test.ts'
import { QueryParams } from './query-params.ts'

const nowMs = Date.UTC(2026, 0, 31, 12)
const context = { timezone: 'UTC', nowMs, usesEngineRegex: true, readsFlagMap: false }
const property = (operator: string, value: JsonValue, over: Partial<PropertyCondition> = {}): PropertyCondition => ({
  ...{ kind: 'property', source: { kind: 'event' }, key: 'k', operator, value, matchingVersion: 2 },
  ...over,
})

function conditionSql(decided: ReadonlyMap<string, Decided> = new Map()) {
  const params = new QueryParams()
  return { params, conditions: new ConditionSql(context, params, decided) }
}

describe('conditions in SQL', () => {
  it('are combined as they are nested', () => {
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

  it('join the person of today only if needed', () => {
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
    const leaves = [...conditions.tables].map(([name, table]) => [name, table.leaves.length])
    assert.deepEqual(leaves, [
      ['events', 4],
      ['group_3', 1],
      ['persons', 1],
    ])
    for (const { columns } of conditions.tables.values()) assert.equal(new Set(columns).size, columns.length)
  })

  it('use Node’s decision for residual values', () => {
    const condition = property('exact', 'a')
    const undecided = conditionSql()
    undecided.conditions.of(condition)
    const { id } = undecided.conditions.tables.get('events')!.leaves[0]!
    for (const [decided, expected] of [
      [undefined, /!= '', NULL,/],
      [{ known: [], matching: [] }, /!= '', NULL,/],
      [
        { known: ['A'], matching: [] },
        /!= '', if\(hex\(sipHash128\(\w+\)\) IN \(\{\w+:Array\(String\)\}\), 0, NULL\),/,
      ],
      [
        { known: ['A', 'B'], matching: ['B'] },
        /!= '', if\(hex.* IN \(\{\w+:Array\(String\)\}\), hex.* IN \(.*\), NULL\),/,
      ],
    ] as const) {
      const { conditions } = conditionSql(decided && new Map([[id, decided]]))
      conditions.of(condition)
      assert.match(conditions.tables.get('events')!.columns.at(-1)!, expected)
    }
  })

  it('contain no text of the caller', () => {
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
    const text = JSON.stringify([...conditions.tables].map(([, { columns }]) => columns)).toLowerCase()
    for (const piece of ['or 1 =', '{a:', '🏴', "x'"]) assert.ok(!text.includes(piece), piece)
    assert.ok(Object.values(params.values).includes(hostile))
  })
})

describe('a time in SQL', () => {
  const paramsOf = (operator: string, value: JsonValue): unknown[] => {
    const params = new QueryParams()
    const { matches } = compilePropertyTest(property(operator, value), accessText('t', '1'), context, params)
    return [...Object.values(params.values), ...(matches === '0' ? ['never'] : [])]
  }

  it('is a text with nine digits after the second, also before 1970', () => {
    for (const [value, expected] of [
      ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.000000000'],
      ['2026-01-31T12:00:00.123456Z', '2026-01-31T12:00:00.123456000'],
      ['2026-01-31T13:30:00+01:30', '2026-01-31T12:00:00.000000000'],
      ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000000000'],
      ['1969-12-31T23:59:59.999999Z', '1969-12-31T23:59:59.999999000'],
      ['1969-12-31T23:59:59.000001Z', '1969-12-31T23:59:59.000001000'],
      ['-1d', '2026-01-30T12:00:00.000000000'],
      ['no time', 'never'],
      ['', 'never'],
    ] as const)
      assert.deepEqual(paramsOf('is_date_before', value), [expected], value)
  })
})

describe('numbers in SQL', () => {
  it('are compared with the bound, and never match without one', () => {
    const paramsOf = (operator: string, value: JsonValue) => {
      const params = new QueryParams()
      const { matches } = compilePropertyTest(property(operator, value), accessText('t', '1'), context, params)
      return matches === '0' ? null : Object.values(params.values)
    }
    for (const [operator, value, expected] of [
      ['gt', 5, [5]],
      ['lte', '-1.5', [-1.5]],
      ['lt', 'a', null],
      ['between', [1, 2], [1, 2]],
      ['between', ['1', 1], [1]],
      ['not_between', [2, 1], null],
      ['between', [1], null],
      ['between', [1, 2, 3], null],
      ['between', [1, 'b'], null],
      ['between', 5, null],
    ] as const)
      assert.deepEqual(paramsOf(operator, value as JsonValue), expected, `${operator} ${value}`)
  })
})

describe('a value that is left to Node', () => {
  it('is read from its JSON as flags read it', () => {
    const cases: [operator: string, value: JsonValue, text: string, expected: boolean][] = [
      ['exact', 'a', 'v"a"', true],
      ['exact', 'A', 'v"a"', true],
      ['exact', 'b', 'v"a"', false],
      // The engine writes 1.0 as 1.
      ['exact', '1.0', 'd1', true],
      ['exact', '1', 'd1', false],
      ['exact', '1.5', 'd1.5', true],
      ['exact', '1', 'v1', true],
      ['exact', '1.0', 't{"k":1.0}', true],
      ['exact', '-0.0', 't{"k":-0}', true],
      // Of two equal keys the last one counts.
      ['exact', '2', 't{"k":1,"k":2}', true],
      ['exact', '1', 't{"k":1,"k":2}', false],
      ['exact', '12345678901234567890', 't{"k":12345678901234567890}', true],
      ['exact', 'a', 't{}', false],
      ['exact', 'a', 't', false],
      ['exact', 'a', 't["a"]', false],
      ['is_not', 'a', 't{}', true],
      ['is_set', null, 't{"k":null}', true],
      ['is_set', null, 't{}', false],
      ['is_not_set', null, 't{}', true],
      ['gt', 1, 'd1.5', true],
      ['icontains', '\ud83c', 'v"🏴"', true],
    ]
    for (const [operator, value, text, expected] of cases) {
      const test = compilePropertyTest(property(operator, value), accessText('t', '1'), context, new QueryParams())
      assert.equal(matchesResidual(text, 'k', test, nowMs), expected, `${operator} ${value} of ${text}`)
    }
    const proto = compilePropertyTest(property('exact', 'a'), accessText('t', '1'), context, new QueryParams())
    assert.equal(matchesResidual('t{"__proto__":"a"}', '__proto__', proto, nowMs), true)
    assert.equal(matchesResidual('t{}', 'constructor', proto, nowMs), false)
  })
})
