import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findMissingRanges, mergeRowRanges, type RowRange } from './row-ranges.ts'

function range(from: number, to: number, more: Partial<RowRange> = {}): RowRange {
  return { table: 'events', tableId: 'a', partition: '0-202611', from, to, oldestMs: from, newestMs: to, ...more }
}

describe('findMissingRanges', () => {
  it('finds nothing if ranges were joined or grew, in any order', () => {
    assert.deepEqual(findMissingRanges([range(1, 3), range(4, 9), range(12, 12)], [range(1, 20)]), [])
    assert.deepEqual(findMissingRanges([range(1, 9)], [range(6, 9), range(1, 5), range(10, 11)]), [])
    assert.deepEqual(findMissingRanges([], [range(1, 1)]), [])
  })

  it('finds a hole between ranges, with the times on both sides of it', () => {
    const now = [range(1, 4, { newestMs: 40 }), range(7, 9, { oldestMs: 70 })]
    assert.deepEqual(findMissingRanges([range(1, 9)], now), [range(5, 6, { oldestMs: 40, newestMs: 70 })])
  })

  it('finds the end that an older copy lacks, and a beginning that was removed', () => {
    assert.deepEqual(findMissingRanges([range(1, 200)], [range(1, 150)]), [range(151, 200, { oldestMs: 150 })])
    assert.deepEqual(findMissingRanges([range(1, 9)], [range(4, 9)]), [range(1, 3, { newestMs: 4 })])
  })

  it('finds the whole range if the rows are only in another table or partition, or nowhere', () => {
    for (const now of [[], [range(1, 9, { tableId: 'b' })], [range(1, 9, { partition: '1-202611' })]])
      assert.deepEqual(findMissingRanges([range(1, 9)], now), [range(1, 9)])
  })

  it('leaves the times of a hole null if the ranges have none', () => {
    const timeless = { oldestMs: null, newestMs: null }
    assert.deepEqual(findMissingRanges([range(1, 3, timeless)], []), [range(1, 3, timeless)])
  })
})

it('mergeRowRanges joins ranges that touch or overlap, but only within one partition', () => {
  const other = range(3, 3, { partition: '1-202611' })
  assert.deepEqual(mergeRowRanges([range(3, 5), other, range(1, 2), range(7, 7), range(4, 4)]), [
    range(1, 5),
    range(7, 7),
    other,
  ])
})
