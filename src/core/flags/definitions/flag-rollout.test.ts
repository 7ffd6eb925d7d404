import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, type JsonValue, parseJson } from '../../json.ts'
import { type FlagRollout, readFlagRollout } from './flag-rollout.ts'

const all = { properties: [], rollout_percentage: 100 }
const some = { properties: [{ key: 'plan', type: 'person', value: 'pro' }], rollout_percentage: 100 }
const ofFlag = { properties: [{ key: '1', type: 'flag', value: true, operator: 'flag_evaluates_to' }] }
const none = { properties: [], rollout_percentage: 0 }
const half = { properties: [], rollout_percentage: 50 }
const variants = (...weights: number[]) => ({
  multivariate: { variants: weights.map((weight, index) => ({ key: 'abc'[index]!, rollout_percentage: weight })) },
})

const everybody = (variant: string | null = null): FlagRollout => ({ kind: 'everybody', variant })
const [nobody, partial, unreadable] = (['nobody', 'some', 'unreadable'] as const).map(kind => ({ kind }))

const table: [what: string, filters: JsonValue, rollout: FlagRollout | undefined][] = [
  ['one set for everyone', { groups: [all] }, everybody()],
  ['a set without a percentage', { groups: [{ properties: [] }] }, everybody()],
  ['a percentage of null and no list of filters', { groups: [{ rollout_percentage: null }] }, everybody()],
  ['a set for everyone after one for some', { groups: [some, half, all] }, everybody()],
  ['rules', { version: 2, return_type: 'boolean', default_value: true, rules: [] }, partial],
  ['rules that cannot be read', { version: 2, rules: [] }, unreadable],
  ['an unknown version', { version: 3, groups: [all] }, unreadable],
  ['no sets', { groups: [] }, nobody],
  ['no filters at all', {}, nobody],
  ['sets that match no one', { groups: [none, { ...some, rollout_percentage: 0 }] }, nobody],
  ['a set with filters', { groups: [some] }, partial],
  ['a set that tests another flag', { groups: [ofFlag] }, partial],
  ['a percentage between 0 and 100', { groups: [half] }, partial],
  ['two sets with the same half', { groups: [half, half] }, partial],
  ['variants', { groups: [all], ...variants(50, 50) }, partial],
  ['one variant with everything', { groups: [all], ...variants(0, 100) }, everybody('b')],
  ['one variant with everything, for some', { groups: [some], ...variants(0, 100) }, partial],
  ['a set that names its variant', { groups: [{ ...all, variant: 'a' }], ...variants(50, 50) }, everybody('a')],
  ['a set that names an unknown variant', { groups: [{ ...all, variant: 'z' }], ...variants(50, 50) }, partial],
  [
    'a variant for some before another for all',
    { groups: [{ ...some, variant: 'a' }, all], ...variants(0, 100) },
    partial,
  ],
  [
    'one variant reached in two ways',
    { groups: [{ ...some, variant: 'b' }, all], ...variants(0, 100) },
    everybody('b'),
  ],
  [
    'a variant for some after a set for everyone',
    { groups: [all, { ...some, variant: 'a' }], ...variants(0, 100) },
    everybody('b'),
  ],
  ['variants that sum to less than 100 %', { groups: [all], ...variants(50) }, partial],
  ['variants for no one', { groups: [none], ...variants(50, 50) }, nobody],
  ['an empty list of variants', { groups: [all], multivariate: { variants: [] } }, everybody()],
  [
    'an early exit after a percentage',
    { groups: [{ ...some, rollout_percentage: 50 }, all], early_exit: true },
    partial,
  ],
  ['an early exit for everyone', { groups: [none, all], early_exit: true }, nobody],
  ['an early exit that no one reaches', { groups: [some, all], early_exit: true }, everybody()],
  ['enrolment', { groups: [none], feature_enrollment: true }, partial],
  ['a holdout', { groups: [all], holdout: { id: 1, exclusion_percentage: 5 } }, partial],
  ['a holdout of 0 %', { groups: [all], holdout: { id: 1, exclusion_percentage: 0 } }, everybody()],
  ['a holdout of 100 %', { groups: [half], holdout: { id: 1, exclusion_percentage: 100 } }, everybody('holdout-1')],
  ['a holdout before sets for no one', { groups: [none], holdout: { id: 1, exclusion_percentage: 5 } }, partial],
  ['a flag for groups', { groups: [all], aggregation_group_type_index: 0 }, everybody()],
  ['a set for groups alone', { groups: [{ ...all, aggregation_group_type_index: 0 }] }, partial],
  [
    'a set for persons of a flag for persons',
    { groups: [{ ...all, aggregation_group_type_index: null }] },
    everybody(),
  ],
  ['sets that are not a list', { groups: 'all' }, unreadable],
  ['a document of another version', { version: 2, groups: [all] }, unreadable],
  ['a filter of an unknown type', { groups: [{ properties: [{ type: 'moon', key: 'a' }] }] }, unreadable],
]

describe('the rollout of a flag', () => {
  for (const [what, filters, rollout] of table)
    it(`is ${rollout!.kind} with ${what}`, () => assert.deepEqual(readFlagRollout(filters as JsonObject), rollout))

  it('keeps percentages as they were written', () => {
    const written = parseJson('{"groups": [{"properties": [], "rollout_percentage": 100.0}]}') as JsonObject
    assert.deepEqual(readFlagRollout(written), everybody())
  })
})
