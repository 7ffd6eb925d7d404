// How an export is cut: into windows of days, slices of time, and ranges of the sort key.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { compareCursors } from './compare-cursors.ts'
import { computeBucketWidthMs, groupDaysIntoWindows, groupIntoSlices } from './export-slices.ts'
import { buildRangeCondition, findKeyRanges, wholeRange } from './key-ranges.ts'

const limits = { windowRowsMin: 10, dayRowsMax: 20, sliceRowsMax: 5, sliceBytesMax: 50 }

describe('the time windows of an export', () => {
  it('span as many days as are needed for enough rows, and a busy day has a window of its own', () => {
    const cases: [
      days: [string, number][],
      expected: [days: string, rows: number, isBusy: boolean][],
      busy?: string,
    ][] = [
      [[], []],
      [[['a', 0]], [['a', 0, false]]],
      [
        [
          ['a', 10],
          ['b', 1],
        ],
        [
          ['a', 10, false],
          ['b', 1, false],
        ],
      ],
      [
        [
          ['a', 9],
          ['b', 20],
          ['c', 1],
        ],
        [
          ['a b', 29, false],
          ['c', 1, false],
        ],
      ],
      [
        [
          ['a', 9],
          ['b', 21],
          ['c', 1],
        ],
        [
          ['a', 9, false],
          ['b', 21, true],
          ['c', 1, false],
        ],
      ],
      [
        [
          ['a', 21],
          ['b', 22],
        ],
        [
          ['a', 21, true],
          ['b', 22, true],
        ],
      ],
      [
        [
          ['a', 1],
          ['b', 1],
          ['c', 1],
        ],
        [
          ['a', 1, false],
          ['b', 1, true],
          ['c', 1, false],
        ],
        'b',
      ],
    ]
    for (const [days, expected, busy] of cases) {
      const windows = groupDaysIntoWindows(days, limits, busy)
      assert.deepEqual(
        windows.map(({ days, rowCount, isBusy }) => [days.join(' '), rowCount, isBusy]),
        expected,
      )
    }
  })

  it('are divided into time buckets whose width depends on the number of rows and is at least one millisecond', () => {
    for (const [spanMs, rowCount, expected] of [
      [86_400_000, 0, 86_400_000 / 64],
      [86_400_000, 1, Math.floor(86_400_000 / (64 + 7))],
      [86_400_000, 5, 86_400_000 / 96],
      [86_400_000, 1e9, 86_400_000 / 20_000],
      [1, 0, 1],
    ] as const)
      assert.equal(computeBucketWidthMs(spanMs, rowCount, limits), expected)
  })
})

describe('the slices of a window', () => {
  it('cover the window without gaps or overlaps, contain every row, and stay within their limits', () => {
    const bucket = fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 80 }))
    fc.assert(
      fc.property(fc.array(bucket, { maxLength: 12 }), fc.boolean(), (gaps, descending) => {
        const span = { fromMs: -7, toMs: 100 }
        let at = span.fromMs
        const ascending = gaps.map(([gap, rowCount, bytes]) => {
          const fromMs = at + gap
          at = fromMs + 2
          return { fromMs, toMs: at, rowCount, bytes }
        })
        const buckets = descending ? ascending.toReversed() : ascending
        const slices = groupIntoSlices(buckets, span, descending, limits)
        const inTime = descending ? slices.toReversed() : slices
        assert.equal(slices.length === 0, buckets.length === 0)
        for (const [index, slice] of inTime.entries()) {
          assert.equal(slice.fromMs, inTime[index - 1]?.toMs ?? span.fromMs)
          const own = ascending.filter(({ fromMs, toMs }) => fromMs >= slice.fromMs && toMs <= slice.toMs)
          const sum = (key: 'rowCount' | 'bytes') => own.reduce((total, each) => total + each[key], 0)
          assert.deepEqual([slice.rowCount, slice.bytes], [sum('rowCount'), sum('bytes')])
          assert.ok(own.length === 1 || (slice.rowCount <= 5 && slice.bytes <= 50))
        }
        if (slices.length > 0) assert.equal(inTime.at(-1)!.toMs, span.toMs)
        const total = buckets.reduce((sum, { rowCount }) => sum + rowCount, 0)
        assert.equal(
          slices.reduce((sum, { rowCount }) => sum + rowCount, 0),
          total,
        )
      }),
      { numRuns: 100 },
    )
  })
})

describe('ranges of the sort key', () => {
  const row = (event: string): [string, string, string] => [event, `${event} id`, `${event} uuid`]
  const rangesOf = (count: number, samples: readonly [string, string, string][]) =>
    findKeyRanges(async () => samples as never, { conditions: 'c', params: {}, rowCount: 100, count })

  it('follow each other from the first key to the last', async () => {
    for (const [count, sampled] of [
      [1, 9],
      [2, 0],
      [2, 1],
      [2, 9],
      [4, 3],
      [4, 32],
      [5, 7],
    ] as const) {
      const samples = Array.from({ length: sampled }, (_, index) => row(String.fromCharCode(97 + index)))
      const ranges = await rangesOf(count, samples)
      assert.ok(ranges.length >= 1 && ranges.length <= count, `${count} of ${sampled}: ${ranges.length}`)
      assert.deepEqual([ranges[0]!.above, ranges.at(-1)!.upTo], [null, null])
      for (const [index, { above }] of ranges.entries()) if (index > 0) assert.deepEqual(above, ranges[index - 1]!.upTo)
    }
    assert.deepEqual(await rangesOf(1, []), [wholeRange])
  })

  it('become SQL conditions with their values as parameters, and exclude the lower end', () => {
    const [above, upTo] = ["a'", 'b'].map(event => ({ event, distinctId: 'id', uuid: 'u' }))
    assert.deepEqual(buildRangeCondition(wholeRange), { condition: 'true', params: {} })
    const { condition, params } = buildRangeCondition({ above: above!, upTo: upTo! })
    assert.deepEqual(params, {
      ...{ above_event: "a'", above_id: 'id', above_uuid: 'u', up_to_event: 'b', up_to_id: 'id', up_to_uuid: 'u' },
    })
    assert.deepEqual(condition.match(/uuid (<=|>=|<|>) \{\w+/g), ['uuid > {above_uuid', 'uuid <= {up_to_uuid'])
    assert.deepEqual(condition.match(/^event >= .* AND event <= /s)?.length, 1)
  })
})

describe('the order of positions in an export', () => {
  const place = (timestampMs: number, uuid: string, tieBreak = '0') => ({ timestampMs, uuid, tieBreak })

  it('is by time, by the second half of the uuid, by its first half, then by the tie-break', () => {
    const low = '00000000-0000-4000-8000-000000000001'
    const ascending = [
      place(-1, 'ffffffff-ffff-4fff-bfff-ffffffffffff'),
      place(0, 'ffffffff-ffff-4fff-8000-000000000000'),
      place(0, low, '9'),
      place(0, low, '10'),
      place(0, low, '18446744073709551615'),
      place(0, '00000000-0001-4000-8000-000000000001'),
      place(0, '00000000-0000-4000-8001-000000000000'),
      place(5, low),
    ]
    for (const descending of [false, true])
      for (const [i, a] of ascending.entries())
        for (const [j, b] of ascending.entries())
          assert.equal(
            Math.sign(compareCursors(a, b, descending)) + 0,
            Math.sign(descending ? j - i : i - j),
            `${i} ${j}`,
          )
  })
})
