import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { clampWidth, layOutColumns } from './columns.ts'

const columns = [
  { id: 'key', widthPx: 200, isFlexible: true },
  { id: 'calls', widthPx: 90 },
]

describe('the columns of a grid', () => {
  it('have their widths, and a flexible one takes what is left', () => {
    assert.deepEqual(layOutColumns(columns, {}, false), { template: 'minmax(200px, 1fr) 90px', widthMin: '290px' })
    assert.deepEqual(layOutColumns(columns, {}, true), {
      template: '2rem minmax(200px, 1fr) 90px',
      widthMin: 'calc(290px + 2rem)',
    })
  })

  it('keep the widths that were chosen, and leave the rest empty', () => {
    assert.deepEqual(layOutColumns(columns, { key: 320 }, false), { template: '320px 90px 1fr', widthMin: '410px' })
  })

  it('become neither too narrow to be found nor endless', () => {
    assert.deepEqual([-10, 47.6, 300.4, 9_999].map(clampWidth), [48, 48, 300, 1_200])
  })
})
