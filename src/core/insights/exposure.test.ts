import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findExpectedVariants, testVariantShares } from './exposure.ts'

const variants = (...percentages: number[]) => ({
  multivariate: {
    variants: percentages.map((rollout_percentage, index) => ({ key: `v${index}`, rollout_percentage })),
  },
})
const shares = (filters: object) => findExpectedVariants(filters as never).map(variant => variant.expectedShare)
const split = (...counts: [persons: number, expectedShare: number | null][]) =>
  testVariantShares(counts.map(([persons, expectedShare]) => ({ persons, expectedShare })))

describe('findExpectedVariants', () => {
  it('lists the variants of the flag with their shares', () => {
    assert.deepEqual(findExpectedVariants(variants(30, 70)), [
      { variant: 'v0', expectedShare: 0.3 },
      { variant: 'v1', expectedShare: 0.7 },
    ])
    assert.deepEqual(shares(variants(20, 20)), [0.5, 0.5])
    assert.deepEqual(shares(variants(100, 0)), [1, 0])
  })

  it('expects no share where the definition sets none', () => {
    const boolean = [
      { variant: 'true', expectedShare: null },
      { variant: 'false', expectedShare: null },
    ]
    assert.deepEqual(findExpectedVariants({}), boolean)
    assert.deepEqual(findExpectedVariants({ groups: [{ rollout_percentage: 50 }] }), boolean)
    assert.deepEqual(findExpectedVariants({ multivariate: 7 }), boolean)
    assert.deepEqual(shares(variants(0, 0)), [null, null])
    assert.deepEqual(shares({ ...variants(50, 50), aggregation_group_type_index: 0 }), [null, null])
    assert.deepEqual(shares({ ...variants(50, 50), groups: [{ aggregation_group_type_index: 1 }] }), [null, null])
  })
})

describe('findExpectedVariants of rules', () => {
  const rule = (...weights: number[]) => ({
    rule_type: 'experiment',
    variants: weights.map((weight, index) => ({ key: `v${index}`, weight, value: true })),
  })
  const ofRules = (...rules: object[]) => findExpectedVariants({ version: 2, rules } as never)

  it('lists the variants of the experiment with their weights', () => {
    assert.deepEqual(ofRules({ rule_type: 'targeted_release', value: true }, rule(30, 70)), [
      { variant: 'v0', expectedShare: 0.3 },
      { variant: 'v1', expectedShare: 0.7 },
    ])
  })

  it('expects no shares with several experiments, and expects true and false without an experiment', () => {
    const keys = ['v0', 'v1', 'v2'].map(variant => ({ variant, expectedShare: null }))
    assert.deepEqual(ofRules(rule(30, 70), rule(20, 40, 40)), keys)
    const boolean = ['true', 'false'].map(variant => ({ variant, expectedShare: null }))
    assert.deepEqual(ofRules({ rule_type: 'targeted_release', value: true }), boolean)
  })
})

describe('testVariantShares', () => {
  it("is Pearson's test, with one degree of freedom less than variants", () => {
    const two = split([5_100, 0.5], [4_900, 0.5])!
    assert.deepEqual([two.chiSquare, two.degreesOfFreedom], [4, 1])
    // Two standard deviations of a normal distribution.
    assert.ok(Math.abs(two.pValue - 0.04550026389635842) < 1e-14, `${two.pValue}`)
    const three = split([15, 0.25], [40, 0.5], [25, 0.25])!
    assert.deepEqual([three.chiSquare, three.degreesOfFreedom], [2.5, 2])
    // With two degrees of freedom, the probability is e^(-χ²/2).
    assert.ok(Math.abs(three.pValue - Math.exp(-1.25)) < 1e-14, `${three.pValue}`)
  })

  it('finds no mismatch in an even split, and a large one in an uneven split', () => {
    assert.deepEqual(split([500, 0.5], [500, 0.5]), { chiSquare: 0, degreesOfFreedom: 1, pValue: 1 })
    // Ten standard deviations of a normal distribution.
    const { pValue } = split([5_500, 0.5], [4_500, 0.5])!
    assert.ok(Math.abs(pValue / 1.523970604832105e-23 - 1) < 1e-12, `${pValue}`)
    assert.equal(split([1_000_000, 0.5], [1, 0.5])!.pValue, 0)
  })

  it('returns null for fewer than two expected variants, or fewer than five expected persons', () => {
    assert.equal(split([100, 1], [3, 0]), null)
    assert.equal(split([100, null], [100, null]), null)
    assert.equal(split([9, 0.5], [0, 0.5]), null)
    assert.notEqual(split([10, 0.5], [0, 0.5]), null)
    assert.equal(split([400, 0.99], [4, 0.01]), null)
    assert.equal(split(), null)
  })

  it('leaves out variants with a share of 0', () => {
    assert.deepEqual(split([50, 0.5], [50, 0.5], [1_000, 0]), { chiSquare: 0, degreesOfFreedom: 1, pValue: 1 })
  })
})
