import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, type JsonValue, parseJson } from '../../json.ts'
import { type FlagRollout, rolloutOf } from './flag-rollout.ts'

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
  ['one set for everybody', { groups: [all] }, everybody()],
  ['a set without a percentage', { groups: [{ properties: [] }] }, everybody()],
  ['a percentage of null and no list of filters', { groups: [{ rollout_percentage: null }] }, everybody()],
  ['a set for everybody behind one for some', { groups: [some, half, all] }, everybody()],
  ['rules', { version: 2, return_type: 'boolean', default_value: true, rules: [] }, partial],
  ['rules that cannot be read', { version: 2, rules: [] }, unreadable],
  ['a version that is not known', { version: 3, groups: [all] }, unreadable],
  ['no sets', { groups: [] }, nobody],
  ['no filters at all', {}, nobody],
  ['sets for nobody', { groups: [none, { ...some, rollout_percentage: 0 }] }, nobody],
  ['a set with filters', { groups: [some] }, partial],
  ['a set that tests another flag', { groups: [ofFlag] }, partial],
  ['a percentage in between', { groups: [half] }, partial],
  ['two halves, which are the same half', { groups: [half, half] }, partial],
  ['variants', { groups: [all], ...variants(50, 50) }, partial],
  ['one variant with everything', { groups: [all], ...variants(0, 100) }, everybody('b')],
  ['one variant with everything, for some', { groups: [some], ...variants(0, 100) }, partial],
  ['a set that names its variant', { groups: [{ ...all, variant: 'a' }], ...variants(50, 50) }, everybody('a')],
  ['a set that names no variant there is', { groups: [{ ...all, variant: 'z' }], ...variants(50, 50) }, partial],
  [
    'a variant for some before another for all',
    { groups: [{ ...some, variant: 'a' }, all], ...variants(0, 100) },
    partial,
  ],
  ['one variant by two ways', { groups: [{ ...some, variant: 'b' }, all], ...variants(0, 100) }, everybody('b')],
  [
    'a variant of some behind everybody',
    { groups: [all, { ...some, variant: 'a' }], ...variants(0, 100) },
    everybody('b'),
  ],
  ['variants that get less than everything', { groups: [all], ...variants(50) }, partial],
  ['variants for nobody', { groups: [none], ...variants(50, 50) }, nobody],
  ['a list of variants that is empty', { groups: [all], multivariate: { variants: [] } }, everybody()],
  [
    'an early exit behind a percentage',
    { groups: [{ ...some, rollout_percentage: 50 }, all], early_exit: true },
    partial,
  ],
  ['an early exit for everybody', { groups: [none, all], early_exit: true }, nobody],
  ['an early exit that nobody meets', { groups: [some, all], early_exit: true }, everybody()],
  ['enrolment', { groups: [none], feature_enrollment: true }, partial],
  ['a holdout', { groups: [all], holdout: { id: 1, exclusion_percentage: 5 } }, partial],
  ['a holdout of nobody', { groups: [all], holdout: { id: 1, exclusion_percentage: 0 } }, everybody()],
  ['a holdout of everybody', { groups: [half], holdout: { id: 1, exclusion_percentage: 100 } }, everybody('holdout-1')],
  ['a holdout of some before nobody', { groups: [none], holdout: { id: 1, exclusion_percentage: 5 } }, partial],
  ['a flag for groups', { groups: [all], aggregation_group_type_index: 0 }, everybody()],
  ['a set for groups alone', { groups: [{ ...all, aggregation_group_type_index: 0 }] }, partial],
  [
    'a set for persons of a flag for persons',
    { groups: [{ ...all, aggregation_group_type_index: null }] },
    everybody(),
  ],
  ['sets that are no list', { groups: 'all' }, unreadable],
  ['a document of another version', { version: 2, groups: [all] }, unreadable],
  ['a filter of an unknown type', { groups: [{ properties: [{ type: 'moon', key: 'a' }] }] }, unreadable],
]

describe('the rollout of a flag', () => {
  for (const [what, filters, rollout] of table)
    it(`is ${rollout!.kind} with ${what}`, () => assert.deepEqual(rolloutOf(filters as JsonObject), rollout))

  it('reads percentages as they were written', () => {
    const written = parseJson('{"groups": [{"properties": [], "rollout_percentage": 100.0}]}') as JsonObject
    assert.deepEqual(rolloutOf(written), everybody())
  })
})
