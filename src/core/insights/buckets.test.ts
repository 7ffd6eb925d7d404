import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type BucketCalendar,
  type BucketInterval,
  createBuckets,
  createEarlierBuckets,
  findPreviousPeriod,
  type TimeRange,
} from './buckets.ts'

const berlin: BucketCalendar = { timezone: 'Europe/Berlin', weekStartDay: 1 }
const at = (text: string) => Date.parse(text)
const range = (from: string, end: string) => ({ fromMs: at(from), endMs: at(end) })
const instants = (edges: readonly number[]) => edges.map(ms => new Date(ms).toISOString().replace(':00.000Z', 'Z'))

function bucketsOf(from: string, end: string, interval: BucketInterval, calendar = berlin) {
  const buckets = createBuckets(range(from, end), interval, calendar, 10_000)
  assert.ok(buckets !== null)
  assert.equal(buckets.edges.length, buckets.days.length + 1)
  return buckets
}

describe('createBuckets', () => {
  it('makes days of 23 and 25 hours where the clock changes', () => {
    const spring = bucketsOf('2026-03-27T23:00Z', '2026-03-30T22:00Z', 'day')
    assert.deepEqual(spring.days, ['2026-03-28', '2026-03-29', '2026-03-30'])
    assert.deepEqual(instants(spring.edges), [
      '2026-03-27T23:00Z',
      '2026-03-28T23:00Z',
      '2026-03-29T22:00Z',
      '2026-03-30T22:00Z',
    ])
    const autumn = bucketsOf('2026-10-24T22:00Z', '2026-10-25T23:00Z', 'day')
    assert.deepEqual(autumn.days, ['2026-10-25'])
  })

  it('makes two buckets for the hour that a clock change repeats, and none for the hour that it skips', () => {
    const autumn = bucketsOf('2026-10-24T23:00Z', '2026-10-25T03:00Z', 'hour')
    assert.deepEqual(
      autumn.days.map(day => day.slice(11, 13)),
      ['01', '02', '02', '03'],
    )
    const spring = bucketsOf('2026-03-29T00:00Z', '2026-03-29T03:00Z', 'hour')
    assert.deepEqual(
      spring.days.map(day => day.slice(11, 13)),
      ['01', '03', '04'],
    )
  })

  it('keeps buckets at full local hours when the clock changes by half an hour', () => {
    const calendar = { timezone: 'Australia/Lord_Howe', weekStartDay: 0 } as const
    const autumn = bucketsOf('2026-04-04T13:00Z', '2026-04-04T17:30Z', 'hour', calendar)
    assert.deepEqual(instants(autumn.edges), [
      '2026-04-04T13:00Z',
      '2026-04-04T14:00Z',
      '2026-04-04T15:30Z',
      '2026-04-04T16:30Z',
      '2026-04-04T17:30Z',
    ])
    const spring = bucketsOf('2026-10-03T14:30Z', '2026-10-03T17:00Z', 'hour', calendar)
    assert.deepEqual(instants(spring.edges), [
      '2026-10-03T14:30Z',
      '2026-10-03T15:30Z',
      '2026-10-03T16:00Z',
      '2026-10-03T17:00Z',
    ])
  })

  it('follows all clock changes over years of hourly buckets', () => {
    const { edges, days } = bucketsOf('2025-12-31T23:00Z', '2026-12-31T23:00Z', 'hour')
    assert.equal(days.length, 365 * 24)
    const wall = new Intl.DateTimeFormat('sv-SE', {
      timeZone: 'Europe/Berlin',
      dateStyle: 'short',
      timeStyle: 'medium',
    })
    assert.deepEqual(
      days,
      edges.slice(0, -1).map(ms => wall.format(ms)),
    )
  })

  it('starts weeks on Sunday or Monday, and shortens the first one if the range has an exact start', () => {
    const wednesday = range('2026-04-08T00:00Z', '2026-04-21T00:00Z')
    const utc = { timezone: 'UTC', weekStartDay: 0 } as const
    assert.deepEqual(createBuckets(wednesday, 'week', utc, 9)?.days, ['2026-04-05', '2026-04-12', '2026-04-19'])
    const monday = { timezone: 'UTC', weekStartDay: 1 } as const
    assert.deepEqual(createBuckets(wednesday, 'week', monday, 9)?.days, ['2026-04-06', '2026-04-13', '2026-04-20'])
    const exact = createBuckets({ ...wednesday, startsExactly: true }, 'week', utc, 9)
    assert.deepEqual(exact?.days, ['2026-04-05', '2026-04-12', '2026-04-19'])
    assert.deepEqual(exact?.edges[0], wednesday.fromMs)
  })

  it('makes an empty bucket for a day that the time zone skipped', () => {
    const calendar = { timezone: 'Pacific/Apia', weekStartDay: 1 } as const
    const { days, edges } = bucketsOf('2011-12-29T10:00Z', '2012-01-01T10:00Z', 'day', calendar)
    assert.deepEqual(days, ['2011-12-29', '2011-12-30', '2011-12-31', '2012-01-01'])
    assert.deepEqual(instants(edges), [
      '2011-12-29T10:00Z',
      '2011-12-30T10:00Z',
      '2011-12-30T10:00Z',
      '2011-12-31T10:00Z',
      '2012-01-01T10:00Z',
    ])
    const [before, after] = ['2011-12-30T10:00Z', '2011-12-30T10:00Z'].map(at) as [number, number]
    const skipped = '2011-12-30'
    const ranges: [range: TimeRange, days: string[]][] = [
      [{ fromMs: after, endMs: after + 1, firstDay: skipped }, ['2011-12-30', '2011-12-31']],
      [{ fromMs: before - 1, endMs: before, lastDay: skipped }, ['2011-12-29', '2011-12-30']],
      [{ fromMs: before - 1, endMs: before }, ['2011-12-29']],
      [{ fromMs: after, endMs: before, firstDay: skipped, lastDay: skipped }, ['2011-12-30']],
    ]
    for (const [range, days] of ranges) assert.deepEqual(createBuckets(range, 'day', calendar, 10)?.days, days)
    const alone = createBuckets(ranges[3]![0], 'day', calendar, 10)!
    assert.deepEqual(createEarlierBuckets(alone, { days: 1 }, calendar).days, ['2011-12-29'])
    assert.equal(createBuckets(ranges[3]![0], 'hour', calendar, 10)?.days.length, 1)
  })

  it('starts a day at its first existing time if the clock skips midnight', () => {
    const sao = { timezone: 'America/Sao_Paulo', weekStartDay: 0 } as const
    const { days, edges } = bucketsOf('2018-11-03T03:00Z', '2018-11-06T02:00Z', 'day', sao)
    assert.deepEqual(days, ['2018-11-03', '2018-11-04', '2018-11-05'])
    assert.equal(instants(edges)[1], '2018-11-04T03:00Z')
    const cairo = { timezone: 'Africa/Cairo', weekStartDay: 0 } as const
    assert.deepEqual(bucketsOf('2024-04-25T22:00Z', '2024-04-26T21:00Z', 'day', cairo).days, ['2024-04-26'])
  })

  it('refuses a range with more buckets than allowed, and makes none for an empty range', () => {
    assert.equal(createBuckets(range('2026-01-01T00:00Z', '2026-01-11T00:00Z'), 'day', berlin, 10), null)
    assert.equal(createBuckets(range('1900-01-01T00:00Z', '2299-01-01T00:00Z'), 'hour', berlin, 10_000), null)
    assert.deepEqual(createBuckets(range('2026-01-02T00:00Z', '2026-01-02T00:00Z'), 'day', berlin, 10)?.days, [])
  })
})

describe('createEarlierBuckets', () => {
  const previous = (from: string, end: string, interval: BucketInterval) => {
    const current = bucketsOf(from, end, interval)
    return createEarlierBuckets(current, findPreviousPeriod(current), berlin)
  }

  it('puts the same number of buckets directly before the current ones', () => {
    const days = previous('2026-03-27T23:00Z', '2026-03-30T22:00Z', 'day')
    assert.deepEqual(days.days, ['2026-03-25', '2026-03-26', '2026-03-27'])
    assert.equal(days.edges.at(-1), at('2026-03-27T23:00Z'))
  })

  it('compares half of a month with the same number of days of the month before', () => {
    const months = previous('2026-03-01T00:00Z', '2026-04-15T00:00Z', 'month')
    assert.deepEqual(months.days, ['2026-01-01', '2026-02-01'])
    assert.deepEqual(instants(months.edges), ['2025-12-31T23:00Z', '2026-01-31T23:00Z', '2026-02-15T01:00Z'])
  })

  it('compares hours with the same hours of earlier days, if the range is a day or longer', () => {
    const day = previous('2026-05-01T10:00Z', '2026-05-02T11:00Z', 'hour')
    assert.equal(day.edges[0], at('2026-04-30T10:00Z'))
    const short = previous('2026-05-01T10:00Z', '2026-05-01T13:00Z', 'hour')
    assert.deepEqual(instants(short.edges), [
      '2026-05-01T07:00Z',
      '2026-05-01T08:00Z',
      '2026-05-01T09:00Z',
      '2026-05-01T10:00Z',
    ])
  })

  it('begins at the given distance before the current buckets', () => {
    const current = bucketsOf('2026-03-30T22:00Z', '2026-04-01T22:00Z', 'day')
    assert.deepEqual(createEarlierBuckets(current, { months: 1 }, berlin).days, ['2026-02-28', '2026-03-01'])
  })
})
