import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FlagOutcome } from './flag-outcome.ts'
import { changeKindsMax, ReachTally } from './reach-tally.ts'

const off: FlagOutcome = { kind: 'off', reason: 'no_condition_match', conditionIndex: 0, payload: undefined }
const on: FlagOutcome = { kind: 'on', reason: 'condition_match', conditionIndex: 1, payload: undefined }
const enrolled: FlagOutcome = { kind: 'on', reason: 'super_condition_value', conditionIndex: 0, payload: undefined }
const unknown: FlagOutcome = { kind: 'unknown', reason: 'timeout', conditionIndex: null, payload: undefined }
const variant = (variantKey: string): FlagOutcome => {
  return { kind: 'variant', variantKey, reason: 'condition_match', conditionIndex: 0, payload: undefined }
}

describe('the tally of the persons that a flag reaches', () => {
  it('distinguishes typed values by text, counts a missing value as off, and counts the subjects per deciding rule', () => {
    const typed = (value: number | null, conditionIndex: number | null): FlagOutcome => {
      const decided = { conditionIndex, typed: { value, variantKey: null } }
      return value === null
        ? { kind: 'off', reason: 'no_rule_match', payload: undefined, ...decided }
        : { kind: 'on', reason: 'targeting_match', payload: `${value}`, ...decided }
    }
    const tally = new ReachTally(2)
    tally.add(typed(null, null), typed(0, 1), false)
    tally.add(typed(1, 0), typed(2, 1), false)
    tally.add(typed(2, 1), typed(2, 1), false)
    tally.add(typed(2, 1), typed(null, null), false)
    const { gained, lost, moved, unchanged, byCondition, values } = tally.counts()
    assert.deepEqual(
      { gained, lost, moved, unchanged, byCondition },
      { gained: 1, lost: 1, moved: 1, unchanged: 1, byCondition: [0, 3] },
    )
    assert.deepEqual(
      values.map(({ value }) => value),
      [false, '0', '1', '2'],
    )
  })

  it('counts gains, losses and moves separately, and also subjects that cannot be evaluated', () => {
    const tally = new ReachTally(2)
    tally.add(off, on, false)
    tally.add(off, variant('a'), true)
    tally.add(on, off, false)
    tally.add(on, variant('true'), false)
    tally.add(variant('a'), variant('b'), false)
    tally.add(off, unknown, false)
    tally.add(null, on, false)
    tally.add(enrolled, enrolled, false)
    const { gained, lost, moved, unchanged, evaluated, byCondition, split, values } = tally.counts()
    assert.deepEqual(
      { gained, lost, moved, unchanged, evaluated, split },
      {
        ...{ gained: 2, lost: 1, moved: 2, unchanged: 1, evaluated: 8, split: 1 },
      },
    )
    assert.deepEqual(byCondition, [3, 2], 'an enrolment is not a condition')
    assert.deepEqual(
      values.map(({ value, before, after }) => [value, before, after]),
      [
        [false, 3, 1],
        [true, 3, 3],
        ['a', 1, 1],
        ['true', 0, 1],
        ['b', 0, 1],
        [null, 1, 1],
      ],
      'a variant named true differs from the value true',
    )
  })

  it('stores a limited number of kinds of changes, and counts all further kinds together', () => {
    const tally = new ReachTally(1)
    for (let index = 0; index < changeKindsMax + 20; index++) tally.add(off, variant(`v${index}`), false)
    for (let times = 0; times < 3; times++) tally.add(off, variant('v7'), false)
    const { changes, otherChanges, gained, unchanged } = tally.counts()
    assert.deepEqual([changes.length, otherChanges, gained, unchanged], [changeKindsMax, 20, changeKindsMax + 23, 0])
    assert.deepEqual(changes[0], { from: false, to: 'v7', count: 4 }, 'most first')
  })
})
