import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { coveredDays, daysBetween } from './covered-days.ts'

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

  it('are days: a job may say anything of itself', () => {
    assert.deepEqual(daysBetween('2024-05-01T00:00:00Z', '2024-05-02T23:00:00Z'), {
      first: '2024-05-01',
      last: '2024-05-02',
    })
    for (const [first, last] of [
      ['2024-13-41', '2024-99-99'],
      ['2023-02-29', '2023-03-01'],
      ['2024-05-02', '2024-05-01'],
      ['yesterday', '2024-05-01'],
      [7, null],
    ])
      assert.equal(daysBetween(first, last), null)
  })

  it('are none without jobs', () => assert.deepEqual(coveredDays([]), []))
})
