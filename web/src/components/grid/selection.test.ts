import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countSelected, isSelected, listRange, noSelection, selectRows, wholeSelection } from './selection.ts'

describe('a selection of rows', () => {
  it('has the rows that were selected', () => {
    const selection = selectRows(selectRows(noSelection, ['a', 'b', 'c'], true), ['b'], false)
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map(key => isSelected(selection, key)),
      [true, false, true, false],
    )
    assert.equal(countSelected(selection, 812), 2)
  })

  it('of all rows has those that are not loaded, but not those that were deselected', () => {
    const selection = selectRows(wholeSelection, ['a', 'b'], false)
    assert.ok(isSelected(selection, 'not loaded'))
    assert.ok(!isSelected(selection, 'a'))
    assert.equal(countSelected(selection, 812), 810)
    assert.equal(countSelected(selectRows(selection, ['a'], true), 812), 811)
  })

  it('extends to a row before or after', () => {
    assert.deepEqual(listRange(2, 4), [2, 3, 4])
    assert.deepEqual(listRange(4, 2), [2, 3, 4])
    assert.deepEqual(listRange(3, 3), [3])
  })
})
