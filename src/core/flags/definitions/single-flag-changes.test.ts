import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, parseJson } from '../../json.ts'
import {
  archive,
  disable,
  enable,
  rollOutToEveryone,
  type SingleFlagChange,
  setConditionRollout,
  unarchive,
} from './single-flag-changes.ts'

const everyone = { properties: [], rollout_percentage: 100 }
const some = { properties: [{ key: 'plan', type: 'person', value: 'pro' }], rollout_percentage: 10 }
const variants = (control: number, test: number) => ({
  variants: [
    { key: 'control', rollout_percentage: control, name: 'Control' },
    { key: 'test', rollout_percentage: test },
  ],
})

/** The fields to write, or the refusal as text. */
function outcome(write: SingleFlagChange, flag: { active?: boolean; archived?: boolean; filters?: JsonObject }) {
  const changed = write({ active: true, archived: false, filters: {}, ...flag })
  return changed.ok ? changed.value : `${changed.error.attr}: ${changed.error.message}`
}

describe('switching a flag on or off', () => {
  it('changes only a flag that is not in the requested state yet', () => {
    const on = { active: true, archived: false }
    const off = { active: false, archived: false }
    const filed = { active: false, archived: true }
    const no = 'null: Cannot enable an archived feature flag. Unarchive it first.'
    for (const [write, ofOn, ofOff, ofFiled] of [
      [enable, {}, { active: true }, no],
      [disable, { active: false }, {}, {}],
      [archive, { archived: true }, { archived: true }, {}],
      [unarchive, {}, {}, { archived: false }],
    ] as const)
      assert.deepEqual(
        [on, off, filed].map(flag => outcome(write, flag)),
        [ofOn, ofOff, ofFiled],
      )
  })
})

describe('setting the percentage of one condition', () => {
  it('leaves everything else unchanged', () => {
    const filters = { x_of_others: { a: 1 }, groups: [{ ...some, sort_key: 'k' }, everyone], payloads: { true: '1' } }
    assert.deepEqual(outcome(setConditionRollout(0, 2.5), { filters }), {
      filters: { ...filters, groups: [{ ...some, sort_key: 'k', rollout_percentage: 2.5 }, everyone] },
    })
    assert.deepEqual(outcome(setConditionRollout(0, 5), { filters: { groups: [{ properties: [] }] } }), {
      filters: { groups: [{ properties: [], rollout_percentage: 5 }] },
    })
  })

  it('writes nothing if the percentage is already set, however its number is written', () => {
    for (const text of ['10', '10.0', '1e1']) {
      const filters = parseJson(`{"groups":[{"rollout_percentage":${text}}]}`) as JsonObject
      assert.deepEqual(outcome(setConditionRollout(0, 10), { filters }), {}, text)
    }
  })

  it('fails if that condition does not exist', () => {
    for (const [index, filters, said] of [
      [2, { groups: [some, everyone] }, 'Condition 2 does not exist. It has 2.'],
      [0, { groups: [] }, 'This feature flag has no release conditions.'],
      [0, {}, 'This feature flag has no release conditions.'],
      [0, { groups: ['x'] }, 'Condition 0 is not an object. Repair the filters first.'],
    ] as [number, JsonObject, string][])
      assert.equal(outcome(setConditionRollout(index, 5), { filters }), `condition_index: ${said}`)
  })
})

describe('rolling out to everyone', () => {
  it('puts a condition in front of the existing ones', () => {
    const filters = { groups: [some], holdout: { id: 7, exclusion_percentage: 5 }, aggregation_group_type_index: 0 }
    assert.deepEqual(outcome(rollOutToEveryone(null), { filters }), {
      filters: { ...filters, groups: [everyone, some] },
    })
    assert.deepEqual(outcome(rollOutToEveryone(null), {}), { filters: { groups: [everyone] } })
  })

  it('gives the named variant 100 %', () => {
    const payloads = { control: '"a"' }
    assert.deepEqual(
      outcome(rollOutToEveryone('test'), { filters: { groups: [some], multivariate: variants(60, 40), payloads } }),
      { filters: { groups: [everyone, some], multivariate: variants(0, 100), payloads } },
    )
    assert.deepEqual(
      outcome(rollOutToEveryone('test'), { filters: { groups: [everyone], multivariate: variants(60, 40) } }),
      { filters: { groups: [everyone], multivariate: variants(0, 100) } },
    )
  })

  it('changes nothing when the first condition already includes everyone', () => {
    for (const [filters, variantKey, isDone] of [
      [{ groups: [everyone, some] }, null, true],
      [{ groups: [{ ...everyone, description: 'all', variant: null }] }, null, true],
      [{ groups: [{ properties: [] }] }, null, true],
      [{ groups: [{ ...everyone, aggregation_group_type_index: null }] }, null, true],
      [{ groups: [everyone], multivariate: variants(0, 100) }, 'test', true],
      [{ groups: [some, everyone] }, null, false],
      [{ groups: [{ ...everyone, rollout_percentage: 99 }] }, null, false],
      [{ groups: [{ ...everyone, aggregation_group_type_index: null }], aggregation_group_type_index: 0 }, null, false],
      [{ groups: [{ ...everyone, variant: 'control' }], multivariate: variants(0, 100) }, 'test', false],
      [{ groups: [everyone], multivariate: variants(100, 0) }, 'test', false],
    ] as [JsonObject, string | null, boolean][]) {
      const changed = outcome(rollOutToEveryone(variantKey), { filters })
      assert.equal(Object.keys(changed).length === 0, isDone, JSON.stringify(filters))
    }
  })

  it('refuses a missing or unknown variant, and a flag that belongs to an early access feature', () => {
    const multivariate = variants(60, 40)
    for (const [filters, variantKey, said] of [
      [{ multivariate }, null, 'variant_key: Name one of its variants: control, test'],
      [{ multivariate }, 'green', "variant_key: This feature flag has no variant 'green'."],
      [{ multivariate: null }, 'test', 'variant_key: This feature flag has no variants.'],
      [
        { feature_enrollment: true },
        null,
        'null: This feature flag belongs to an early access feature: archive or delete that feature first.',
      ],
    ] as [JsonObject, string | null, string][])
      assert.equal(outcome(rollOutToEveryone(variantKey), { filters }), said)
  })
})
