import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { BucketInterval } from './buckets.ts'
import { countComparisonShiftWeeks, type RangeClock, readDateRange, type WrittenDateRange } from './date-range.ts'

/** A Friday. */
const clock: RangeClock = { timezone: 'Europe/Berlin', weekStartDay: 1, nowMs: Date.parse('2026-05-01T12:34:56.789Z') }

const noDates: WrittenDateRange = { from: null, to: null, isExplicit: false }

function rangeOf(written: Partial<WrittenDateRange>, interval: BucketInterval = 'day', own = clock): string {
  const range = readDateRange({ ...noDates, ...written }, interval, own)
  assert.ok(range.ok, JSON.stringify(range))
  const { fromMs, endMs, startsExactly } = range.value
  const text = (ms: number | null) => (ms === null ? 'all' : new Date(ms).toISOString())
  return `${text(fromMs)} ${text(endMs)}${startsExactly ? ' exactly' : ''}`
}

describe('readDateRange', () => {
  it('returns the last seven days and today by default', () => {
    assert.equal(rangeOf({}), '2026-04-23T22:00:00.000Z 2026-05-01T22:00:00.000Z')
    assert.equal(rangeOf({ from: '-7d' }), rangeOf({}))
    assert.equal(rangeOf({ from: '7d', to: null }), rangeOf({}))
  })

  it('reads relative spans by the local time of the zone', () => {
    const from = (text: string) => rangeOf({ from: text }).slice(0, 24)
    assert.equal(from('dStart'), '2026-04-30T22:00:00.000Z')
    assert.equal(from('-1dStart'), '2026-04-29T22:00:00.000Z')
    assert.equal(from('mStart'), '2026-04-30T22:00:00.000Z')
    assert.equal(from('-1mStart'), '2026-03-31T22:00:00.000Z')
    assert.equal(from('-3m'), '2026-01-31T23:00:00.000Z')
    assert.equal(from('qStart'), '2026-03-31T22:00:00.000Z')
    assert.equal(from('-1qStart'), '2025-12-31T23:00:00.000Z')
    assert.equal(from('yStart'), '2025-12-31T23:00:00.000Z')
    assert.equal(from('-1y'), '2025-04-30T22:00:00.000Z')
    assert.equal(from('-1w'), '2026-04-23T22:00:00.000Z')
    assert.equal(rangeOf({ from: 'all' }), 'all 2026-05-01T22:00:00.000Z')
  })

  it('reads the start and the end of each unit, with the project’s first day of the week', () => {
    const berlin = (text: string, weekStartDay: 0 | 1 = 1) => [
      rangeOf({ from: text }, 'day', { ...clock, weekStartDay }).slice(0, 24),
      rangeOf({ from: '2020-01-01', to: text }, 'day', { ...clock, weekStartDay }).slice(25),
    ]
    const cases: [text: string, weekStartDay: 0 | 1, from: string, end: string][] = [
      ['wStart', 1, '2026-04-26T22:00:00.000Z', '2026-04-27T22:00:00.000Z'],
      ['wStart', 0, '2026-04-25T22:00:00.000Z', '2026-04-26T22:00:00.000Z'],
      ['-1wStart', 1, '2026-04-19T22:00:00.000Z', '2026-04-20T22:00:00.000Z'],
      ['-1wEnd', 1, '2026-04-25T22:00:00.000Z', '2026-04-26T22:00:00.000Z'],
      ['-1wEnd', 0, '2026-04-24T22:00:00.000Z', '2026-04-25T22:00:00.000Z'],
      ['dEnd', 1, '2026-04-30T22:00:00.000Z', '2026-05-01T22:00:00.000Z'],
      ['-1mEnd', 1, '2026-04-29T22:00:00.000Z', '2026-04-30T22:00:00.000Z'],
      ['-1qEnd', 1, '2026-03-30T22:00:00.000Z', '2026-03-31T22:00:00.000Z'],
      ['-1yEnd', 1, '2025-12-30T23:00:00.000Z', '2025-12-31T23:00:00.000Z'],
    ]
    for (const [text, weekStartDay, from, end] of cases) assert.deepEqual(berlin(text, weekStartDay), [from, end], text)
    const explicit = (from: string, to: string) => rangeOf({ from, to, isExplicit: true }, 'hour')
    assert.equal(explicit('hStart', 'hEnd'), '2026-05-01T12:00:00.000Z 2026-05-01T13:00:00.000Z exactly')
    assert.equal(explicit('-1wStart', '-1wEnd'), '2026-04-19T22:00:00.000Z 2026-04-26T22:00:00.000Z exactly')
  })

  it('reads days that begin later than midnight, and days that the zone skipped', () => {
    const zones: [timezone: string, day: string, from: string, end: string][] = [
      ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00.000Z', '2018-11-05T02:00:00.000Z'],
      ['Africa/Cairo', '2024-04-26', '2024-04-25T22:00:00.000Z', '2024-04-26T21:00:00.000Z'],
      ['Asia/Beirut', '2024-03-31', '2024-03-30T22:00:00.000Z', '2024-03-31T21:00:00.000Z'],
      // The range is empty.
      ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00.000Z', '2011-12-30T10:00:00.000Z'],
    ]
    for (const [timezone, day, from, end] of zones)
      assert.equal(rangeOf({ from: day, to: day }, 'day', { ...clock, timezone }), `${from} ${end}`)
    const apia = { ...clock, timezone: 'Pacific/Apia' }
    const order = (from: string, to: string) => readDateRange({ ...noDates, from, to }, 'day', apia).ok
    assert.deepEqual([order('2011-12-31', '2011-12-30'), order('2011-12-30', '2011-12-29')], [false, false])
    assert.deepEqual([order('2011-12-29', '2011-12-30'), order('2011-12-30', '2011-12-31')], [true, true])
  })

  it('includes the whole last day, and for a range of hours the whole last hour', () => {
    const end = (text: string, interval?: BucketInterval) =>
      rangeOf({ from: '-90dStart', to: text }, interval).slice(25)
    assert.equal(end('2026-04-30'), '2026-04-30T22:00:00.000Z')
    assert.equal(end('2026-4-3'), '2026-04-03T22:00:00.000Z')
    assert.equal(end('2026-04-30T01:02:03Z'), '2026-04-30T22:00:00.000Z')
    assert.equal(end('-1d'), '2026-04-30T22:00:00.000Z')
    assert.equal(end('-1mEnd'), '2026-04-30T22:00:00.000Z')
    assert.equal(end('2026-04-30', 'hour'), '2026-04-30T22:00:00.000Z')
    assert.equal(end('-2h', 'hour'), '2026-05-01T11:00:00.000Z')
    assert.equal(end('2026-04-30T01:02:03Z', 'hour'), '2026-04-30T01:02:03.001Z')
    assert.equal(rangeOf({}, 'hour'), '2026-04-23T22:00:00.000Z 2026-05-01T13:00:00.000Z')
  })

  it('begins a range of hours at a full hour, even with daily buckets, and a range of weeks at the start of a day', () => {
    assert.equal(rangeOf({ from: '-24h' }, 'hour'), '2026-04-30T12:00:00.000Z 2026-05-01T13:00:00.000Z')
    assert.equal(rangeOf({ from: '-24h' }, 'day'), '2026-04-30T12:00:00.000Z 2026-05-01T22:00:00.000Z exactly')
    assert.equal(rangeOf({ from: '-8d' }, 'week'), '2026-04-22T22:00:00.000Z 2026-05-01T22:00:00.000Z exactly')
  })

  it('reads explicit dates to the millisecond', () => {
    const written = { from: '2026-04-01T10:30:00Z', to: '2026-04-02T11:45:00Z', isExplicit: true }
    assert.equal(rangeOf(written), '2026-04-01T10:30:00.000Z 2026-04-02T11:45:00.001Z exactly')
    assert.equal(
      rangeOf({ from: '-1h', isExplicit: true }),
      '2026-05-01T11:34:56.789Z 2026-05-01T12:34:56.790Z exactly',
    )
  })

  it('refuses a start after the end, and limits both to storable times', () => {
    const range = readDateRange({ ...noDates, from: '2026-05-03', to: '2026-05-02' }, 'day', clock)
    assert.equal(range.ok || range.error.field, 'from')
    assert.equal(rangeOf({ from: '-99999y' }), '1900-01-01T00:00:00.000Z 2026-05-01T22:00:00.000Z')
    assert.equal(rangeOf({ to: '9999-01-01' }), '2026-04-23T22:00:00.000Z 2300-01-01T00:00:00.000Z')
  })

  it('compares days of whole weeks up to now with the same days of earlier weeks', () => {
    const weeks = (written: Partial<WrittenDateRange>, interval: BucketInterval = 'day') =>
      countComparisonShiftWeeks({ ...noDates, ...written }, interval)
    for (const from of [null, '-7d', '7d', '-7dStart']) assert.equal(weeks({ from }), 1, String(from))
    assert.equal(weeks({ from: '-28d' }), 4)
    for (const from of ['-6d', '-0d', 'dStart', '-1w', '-7h', 'all', '2026-04-24'])
      assert.equal(weeks({ from }), null, from)
    assert.equal(weeks({ from: '-7d', to: '-1d' }), null)
    assert.equal(weeks({ from: '-7d' }, 'week'), null)
  })

  it('refuses any other text, and names the field', () => {
    for (const text of [
      '',
      'yesterday',
      '-1x',
      'MStart',
      '2026-02-30',
      '2026-13-01',
      '2026-00-10',
      '2026-01-00',
      '2026-03-29 02:30',
      '-7d; DROP',
      'allall',
    ]) {
      for (const field of ['from', 'to'] as const) {
        const range = readDateRange({ ...noDates, [field]: text }, 'day', clock)
        assert.equal(range.ok || range.error.field, field, text)
      }
    }
  })
})
