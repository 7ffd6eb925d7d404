import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findDayGaps, mergeCoveredDays, readDaySpan, removeDayGaps } from './covered-days.ts'

describe('the days that import jobs cover', () => {
  it('are listed with their gaps and overlaps', () => {
    const spans = mergeCoveredDays([
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

  it('leave out malformed days, since a job may report anything', () => {
    assert.deepEqual(readDaySpan('2024-05-01T00:00:00Z', '2024-05-02T23:00:00Z'), {
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
      assert.equal(readDaySpan(first, last), null)
  })

  it('leave out the days inside a job that the job itself reports as gaps', () => {
    const gaps = findDayGaps(['2024-05-01', '2024-05-02', '2024-05-05', '2024-05-07', '2024-05-08'])
    assert.deepEqual(gaps, [
      ['2024-05-03', '2024-05-04'],
      ['2024-05-06', '2024-05-06'],
    ])
    assert.equal(findDayGaps(Array.from({ length: 2_000 }, (_, index) => dayAt(index * 2))).length, 500)
    const job = { id: 2, first: '2024-05-01', last: '2024-05-08' }
    const covered = mergeCoveredDays([...removeDayGaps(job, gaps), { id: 3, first: '2024-05-04', last: '2024-05-04' }])
    assert.deepEqual(
      covered.map(({ first, last, ids }) => `${first} ${last} ${ids.join('+')}`),
      [
        '2024-05-01 2024-05-02 2',
        '2024-05-03 2024-05-03 ',
        '2024-05-04 2024-05-04 3',
        '2024-05-05 2024-05-05 2',
        '2024-05-06 2024-05-06 ',
        '2024-05-07 2024-05-08 2',
      ],
    )
    for (const said of [
      undefined,
      7,
      [7],
      [
        ['2024-05-09', '2024-05-20'],
        ['2023-01-01', '2023-01-02'],
        ['x', 'y'],
      ],
    ])
      assert.deepEqual(removeDayGaps(job, said), [job])
    assert.deepEqual(removeDayGaps(job, [['2024-01-01', '2024-12-31']]), [])
  })

  it('are empty without jobs', () => assert.deepEqual(mergeCoveredDays([]), []))
})

function dayAt(index: number): string {
  return new Date(Date.UTC(2010, 0, 1 + index)).toISOString().slice(0, 10)
}
