import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CellPlace, moveFocus, type PressedKey } from './grid-keys.ts'

const size = { rowCount: 100, columnCount: 4, rowsPerPage: 10, hasHead: true }
const plain = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false }

function move(row: number, column: number, key: string, held: Partial<PressedKey> = {}, isRightToLeft = false) {
  const place: CellPlace | null = moveFocus({ row, column }, { ...plain, key, ...held }, size, isRightToLeft)
  return place === null ? null : [place.row, place.column]
}

describe('keys in a grid', () => {
  it('move by a cell and stop at the edges', () => {
    assert.deepEqual(move(5, 1, 'ArrowDown'), [6, 1])
    assert.deepEqual(move(99, 1, 'ArrowDown'), [99, 1])
    assert.deepEqual(move(0, 1, 'ArrowUp'), [-1, 1])
    assert.deepEqual(move(5, 3, 'ArrowRight'), [5, 3])
    assert.deepEqual(move(5, 0, 'ArrowLeft'), [5, 0])
    assert.deepEqual(move(5, 0, 'j'), [6, 0])
    assert.deepEqual(move(5, 0, 'k'), [4, 0])
  })

  it('move by a page, within the rows', () => {
    assert.deepEqual(move(5, 1, 'PageDown'), [15, 1])
    assert.deepEqual(move(95, 1, 'PageDown'), [99, 1])
    assert.deepEqual(move(5, 1, 'PageUp'), [0, 1])
  })

  it('move to the edges', () => {
    assert.deepEqual(move(5, 1, 'Home'), [5, 0])
    assert.deepEqual(move(5, 1, 'End'), [5, 3])
    assert.deepEqual(move(5, 1, 'Home', { ctrlKey: true }), [0, 0])
    assert.deepEqual(move(5, 1, 'End', { metaKey: true }), [99, 3])
    assert.deepEqual(move(5, 1, 'ArrowDown', { ctrlKey: true }), [99, 1])
    assert.deepEqual(move(5, 1, 'ArrowUp', { ctrlKey: true }), [0, 1])
  })

  it('follow the direction of the text', () => {
    assert.deepEqual(move(5, 1, 'ArrowRight', {}, true), [5, 0])
    assert.deepEqual(move(5, 1, 'ArrowLeft', { ctrlKey: true }, true), [5, 3])
  })

  it('that mean something else are left alone', () => {
    assert.equal(move(5, 1, 'x'), null)
    assert.equal(move(5, 1, 'k', { ctrlKey: true }), null)
    assert.equal(move(5, 1, 'ArrowDown', { altKey: true }), null)
    assert.equal(move(5, 1, 'ArrowRight', { shiftKey: true }), null)
  })

  it('stay in the head of a grid without rows', () => {
    const empty = { ...size, rowCount: 0 }
    assert.deepEqual(moveFocus({ row: -1, column: 0 }, { ...plain, key: 'ArrowDown' }, empty), { row: -1, column: 0 })
  })
})
