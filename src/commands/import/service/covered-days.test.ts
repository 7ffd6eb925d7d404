import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { coveredDays } from './covered-days.ts'

describe('the days that import jobs cover', () => {
  it('are told with their gaps and overlaps', () => {
    const spans = coveredDays([
      { id: 3, first: '2024-05-20', last: '2024-06-02' },
      { id: 2, first: '2024-05-01', last: '2024-05-21' },
      { id: 7, first: '2024-06-05', last: '2024-06-05' },
    ])
    assert.deepEqual(
      spans.map(({ first, last, days, ids }) => `${first} ${last} ${days} ${ids.join('+')}`),
      [
        '2024-05-01 2024-05-19 19 2',
        '2024-05-20 2024-05-21 2 2+3',
        '2024-05-22 2024-06-02 12 3',
        '2024-06-03 2024-06-04 2 ',
        '2024-06-05 2024-06-05 1 7',
      ],
    )
  })

  it('are none without jobs', () => assert.deepEqual(coveredDays([]), []))
})
