import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { computeFlagHash01, computeHoldoutHash01, computeVariantBounds, isInRollout, pickVariant } from './rollout.ts'

describe('the rollout', () => {
  it('includes an empty id at every percentage, even at 0 %, and hashes it for holdouts', () => {
    assert.equal(computeFlagHash01('any', '', ''), 0)
    assert.ok(isInRollout(computeFlagHash01('any', '', ''), 0))
    assert.equal(computeHoldoutHash01('').toFixed(6), '0.926883')
  })

  it('includes a subject exactly at the limit of a rollout, but excludes it exactly at the limit of a variant', () => {
    assert.ok(isInRollout(0.5, 50))
    assert.equal(pickVariant(0.5, computeVariantBounds([50, 50])), 1)
  })

  it('has its limit at the double that equals the percentage divided by 100, for every hundredth', () => {
    for (let hundredths = 0; hundredths < 10_000; hundredths++) {
      const percentage = hundredths / 100
      const end = percentage / 100
      assert.ok(isInRollout(end, percentage) && !isInRollout(nextUp(end), percentage), `${percentage}`)
    }
  })

  it('adds weights from left to right, so that some weights with a sum of 100 end below 1', () => {
    assert.equal(pickVariant(0.3, computeVariantBounds([10, 20, 30, 40])), 1)
    assert.equal(pickVariant(0.6, computeVariantBounds([10, 20, 30, 40])), 2)
    assert.equal(pickVariant(0.6666, computeVariantBounds([33.33, 33.33, 33.34])), 2)
    const bounds = computeVariantBounds([1.01, 10.02, 88.97])
    assert.ok(bounds.at(-1)! < 1)
    assert.equal(pickVariant(bounds.at(-1)!, bounds), -1)
  })

  it('finds no variant for a subject beyond the sum of the weights', () => {
    assert.equal(pickVariant(0.9, computeVariantBounds([10, 10])), -1)
    assert.equal(pickVariant(0, []), -1)
  })
})

/** The next double above one that is not negative. */
function nextUp(value: number): number {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  view.setBigUint64(0, view.getBigUint64(0) + 1n)
  return view.getFloat64(0)
}
