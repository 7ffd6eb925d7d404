import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject, JsonValue } from '../../json.ts'
import type { Cohort } from '../definitions/cohort.ts'
import { findNeededParts, type NeededParts } from './needed-parts.ts'

const plan = (value: JsonValue): JsonObject => ({ key: 'plan', type: 'person', value })
const inCohort = (id: number, over: JsonObject = {}): JsonObject => ({ key: 'id', type: 'cohort', value: id, ...over })
const pro = ['"plan":"pro"']
const free = ['"plan":"free"']

function aCohort(id: number, type: string, values: readonly JsonObject[], isStatic = false): [number, Cohort] {
  const filters = { properties: { type, values } }
  return [id, { id, projectId: 1, isStatic, filters } as unknown as Cohort]
}

const cohorts = new Map([
  aCohort(1, 'OR', [plan('pro'), plan('free')]),
  aCohort(2, 'AND', [plan('pro'), { key: 'n', type: 'group', operator: 'gt', value: 5 }]),
  aCohort(3, 'AND', [{ ...plan('pro'), negation: true }, inCohort(1)]),
  aCohort(4, 'AND', [inCohort(4), plan('pro')]),
  aCohort(5, 'AND', [], true),
  aCohort(6, 'OR', [plan('pro'), { key: 'plan', type: 'person', operator: 'is_not_set', value: 'x' }]),
  aCohort(7, 'what', [plan('pro')]),
])

describe("the text parts that a person's properties must contain for a flag to be anything but off", () => {
  it('are listed for each filter of a condition set, and the parts of one of the sets suffice', () => {
    const cases: readonly (readonly [readonly (readonly JsonObject[])[], NeededParts])[] = [
      [[[plan('Pro')]], [[pro]]],
      [[[plan(['pro', 'free'])]], [[pro, free]]],
      [
        [[plan('pro'), { ...plan('a'), operator: 'icontains' }, { ...plan('b'), operator: 'is_not' }]],
        [[pro], [['"plan":']]],
      ],
      [[[plan('pro')], [plan('free')]], [[pro, free]]],
      [[[plan('pro')], []], []],
      [[], []],
      [[[plan(true)]], [[['"plan":']]]],
      [[[{ ...plan('x'), operator: 'is_set' }]], [[['"plan":']]]],
      [[[{ ...plan('x'), operator: 'not_regex' }]], []],
      [[[{ key: 'distinct_id', type: 'person', value: 'ada' }]], []],
      [[[{ key: '1', type: 'flag', value: true }]], []],
      [[[{ key: 'created_at', type: 'person_metadata', operator: 'is_date_after', value: '2026-01-01' }]], []],
      // Another property is read where this one is absent.
      [
        [[{ key: '$os', type: 'person', value: 'Linux' }]],
        [
          [
            ['"$os":"l', 'nux"'],
            ['"$os_name":"l', 'nux"'],
          ],
        ],
      ],
      [[[{ key: 'email', type: 'person', value: 'ann@x.com' }]], [[['"ema', 'l":"ann@x.com"']]]],
    ]
    for (const [sets, parts] of cases) {
      const filters = { groups: sets.map(properties => ({ properties: [...properties], rollout_percentage: 10 })) }
      assert.deepEqual(findNeededParts(filters, cohorts), parts, JSON.stringify(sets))
    }
  })

  it('include those of the cohorts that the flag requires, through their trees', () => {
    const cases: readonly (readonly [JsonObject, NeededParts])[] = [
      [inCohort(1), [[pro, free]]],
      [inCohort(2), [[pro], [['"n":']]]],
      [inCohort(3), [[pro, free]]],
      [inCohort(4), [[pro]]],
      [inCohort(5), []],
      [inCohort(6), []],
      [inCohort(7), []],
      [inCohort(99), []],
      [inCohort(1, { operator: 'not_in' }), []],
    ]
    for (const [filter, parts] of cases)
      assert.deepEqual(findNeededParts({ groups: [{ properties: [filter] }] }, cohorts), parts, JSON.stringify(filter))
  })

  it('are unknown for flags of groups, for unreadable filters, and for flags that also give a value without a matching condition', () => {
    const groups = [{ properties: [plan('pro')] }]
    for (const over of [
      { feature_enrollment: true },
      { holdout: { id: 1, exclusion_percentage: 10 } },
      { aggregation_group_type_index: 0 },
      { groups: [{ properties: [plan('pro')], aggregation_group_type_index: 1 }] },
      { groups: 'unreadable' },
    ])
      assert.deepEqual(findNeededParts({ groups, ...over }, cohorts), [], JSON.stringify(over))
  })

  it('are limited in number, however many filters there are', () => {
    const values = Array.from({ length: 15 }, (_, index) => `value-${index}`)
    assert.deepEqual(
      findNeededParts({ groups: [{ properties: [plan(values)] }, { properties: [plan(values)] }] }, cohorts),
      [],
    )
    const filters = Array.from({ length: 30 }, () => plan('pro'))
    assert.equal(findNeededParts({ groups: [{ properties: filters }] }, cohorts).length, 5)
  })
})
