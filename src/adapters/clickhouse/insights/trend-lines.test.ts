import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TrendMath } from '#core/insights/trends-query.ts'
import type { BreakdownValue, TrendCountQuery, TrendLine } from '#ports/events/insight-queries.ts'
import { findUncachedRuns } from './flag-usage.ts'
import { buildTrendLines, isAdditiveMath, otherValue, rankBreakdownValues, type TrendCell } from './trend-lines.ts'

const numbers = (aggregate: 'sum' | 'avg' | 'min' | 'max' | 'p90'): TrendMath => ({
  ...{ kind: 'numbers', aggregate, property: 'p' },
})
const cell = (bucket: number, figure: number, weight: number, ...value: BreakdownValue): TrendCell => ({
  ...{ bucket, figure, weight, value },
})
const queryOf = (math: TrendMath, breakdowns: number): TrendCountQuery => ({
  ...{
    projectId: 1,
    event: null,
    math,
    condition: { kind: 'all', conditions: [] },
    settings: { timezone: 'UTC', nowMs: 0 },
  },
  buckets: { edges: [0, 1, 2, 3], days: ['a', 'b', 'c'] } as unknown as TrendCountQuery['buckets'],
  breakdown:
    breakdowns === 0
      ? null
      : { by: Array.from({ length: breakdowns }, () => ({ source: { kind: 'event' }, key: 'k' })), limit: 2 },
})

describe('the values of a breakdown', () => {
  it('are ranked by the totals that their lines show, and values with equal totals by their bytes', () => {
    const cases: [math: TrendMath, cells: TrendCell[], expected: string[]][] = [
      [{ kind: 'events' }, [], []],
      [{ kind: 'events' }, [cell(0, 9, 9, ''), cell(0, 1, 1, 'a')], ['a']],
      [{ kind: 'events' }, [cell(0, 2, 2, 'b'), cell(0, 1, 1, 'a'), cell(1, 2, 2, 'a')], ['a', 'b']],
      [{ kind: 'events' }, [cell(0, 1, 1, 'c'), cell(0, 1, 1, 'a'), cell(0, 1, 1, 'b')], ['a', 'b']],
      // In UTF-16 the pair would come first.
      [{ kind: 'events' }, [cell(0, 1, 1, '🏴'), cell(0, 1, 1, '\uffff')], ['\uffff', '🏴']],
      [numbers('avg'), [cell(0, 10, 10, 'a'), cell(0, 3, 1, 'b')], ['b', 'a']],
      [numbers('max'), [cell(0, -5, 1, 'a'), cell(0, 7, 0, 'b')], ['b', 'a']],
    ]
    for (const [math, cells, expected] of cases)
      for (const inOrder of [cells, cells.toReversed()])
        assert.deepEqual(rankBreakdownValues(queryOf(math, 1), inOrder, 2).flat(), expected)
  })

  it('have one line each, followed by a line for events without a value and a line for all other values', () => {
    const events: TrendMath = { kind: 'events' }
    const cases: [
      math: TrendMath,
      breakdowns: number,
      cells: TrendCell[],
      ranked: BreakdownValue[],
      expected: TrendLine[],
    ][] = [
      [events, 0, [], [], [{ value: null, data: [0, 0, 0] }]],
      [events, 0, [cell(2, 4, 4), cell(0, 1, 1)], [], [{ value: null, data: [1, 0, 4] }]],
      [events, 1, [], [['a']], []],
      [
        events,
        1,
        [cell(0, 1, 1, 'x'), cell(0, 2, 2, ''), cell(1, 3, 3, 'a'), cell(0, 4, 4, 'y'), cell(1, 5, 5, ...otherValue)],
        [['b'], ['a']],
        [
          { value: ['a'], data: [0, 3, 0] },
          { value: [''], data: [2, 0, 0] },
          { value: 'other', data: [5, 5, 0] },
        ],
      ],
      [
        events,
        2,
        [cell(0, 1, 1, 'a', ''), cell(0, 2, 2, '', 'a'), cell(0, 3, 3, '', '')],
        [['', 'a']],
        [
          { value: ['', 'a'], data: [2, 0, 0] },
          { value: ['', ''], data: [3, 0, 0] },
          { value: 'other', data: [1, 0, 0] },
        ],
      ],
      [numbers('sum'), 1, [cell(0, -1, 1, 'x'), cell(0, 3, 1, 'y')], [], [{ value: 'other', data: [2, 0, 0] }]],
      [
        numbers('avg'),
        1,
        [cell(0, 10, 4, 'x'), cell(0, 2, 2, 'y'), cell(1, 0, 0, 'x')],
        [],
        [{ value: 'other', data: [2, 0, 0] }],
      ],
      // A value of no number says nothing, and 0 is not the least of negative ones.
      [
        numbers('max'),
        1,
        [cell(0, -3, 1, 'x'), cell(0, 0, 0, 'y'), cell(0, -2, 1, 'z')],
        [],
        [{ value: 'other', data: [-2, 0, 0] }],
      ],
      [
        numbers('min'),
        1,
        [cell(0, 3, 1, 'x'), cell(0, 0, 0, 'y'), cell(0, 2, 1, 'z')],
        [],
        [{ value: 'other', data: [2, 0, 0] }],
      ],
    ]
    for (const [math, breakdowns, cells, ranked, expected] of cases)
      assert.deepEqual(buildTrendLines(queryOf(math, breakdowns), cells, ranked), expected)
  })

  it('are combined from the results per value only for measures for which this gives the exact result', () => {
    for (const [math, expected] of [
      [{ kind: 'events' }, true],
      [{ kind: 'persons' }, false],
      [{ kind: 'groups', groupTypeIndex: 0 }, false],
      [numbers('sum'), true],
      [numbers('avg'), true],
      [numbers('min'), true],
      [numbers('max'), true],
      [numbers('p90'), false],
    ] as const)
      assert.equal(isAdditiveMath(math), expected)
  })
})

it('each sequence of uncached buckets is counted separately, or all of them together if there are many sequences', () => {
  const cases: [kept: string, expected: string][] = [
    ['', ''],
    ['k', ''],
    ['-', '0-1'],
    ['--k-kk-', '0-2 3-4 6-7'],
    ['kk--', '2-4'],
    [`${'-k'.repeat(10)}`, Array.from({ length: 10 }, (_, run) => `${2 * run}-${2 * run + 1}`).join(' ')],
    [`k${'-k'.repeat(11)}`, '1-22'],
  ]
  for (const [kept, expected] of cases) {
    const runs = findUncachedRuns(kept.length, index => kept[index] === 'k')
    assert.equal(runs.map(({ from, end }) => `${from}-${end}`).join(' '), expected, kept)
  }
})
