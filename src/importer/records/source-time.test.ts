import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type JsonValue, parseJson } from '#core/json.ts'
import { RecordReject, type RecordRejectReason } from './imported-event.ts'
import { formatTime, isZoneName, readRecordTime, readTime, usPerMs, utcDay, wallClockToUtc } from './source-time.ts'

const read = (value: Parameters<typeof readTime>[0], zone: string | null = 'UTC') => {
  const timeUs = readTime(value, { zone }, 'at')
  return timeUs === null ? null : formatTime(timeUs)
}

describe('a time', () => {
  const forms: [string, string][] = [
    ['2024-05-01T12:00:00Z', '2024-05-01T12:00:00.000Z'],
    ['2024-05-01 12:00:00.25', '2024-05-01T12:00:00.250Z'],
    ['2024-05-01 12:00:00 UTC', '2024-05-01T12:00:00.000Z'],
    ['2024-05-01T12:00:00.123456Z', '2024-05-01T12:00:00.123456Z'],
    ['2024-05-01T12:00:00.123456789Z', '2024-05-01T12:00:00.123456Z'],
    ['2024-05-01T12:00:00+05:30', '2024-05-01T06:30:00.000Z'],
    ['2024-05-01T12:00:00-0700', '2024-05-01T19:00:00.000Z'],
    ['2024-05-01T12:00:00+02', '2024-05-01T10:00:00.000Z'],
    ['2024-05-01', '2024-05-01T00:00:00.000Z'],
    ['2024-02-29 23:59', '2024-02-29T23:59:00.000Z'],
    ['  2024-05-01T12:00:00Z ', '2024-05-01T12:00:00.000Z'],
  ]
  for (const [text, expected] of forms)
    it(`is read from ${JSON.stringify(text)}`, () => {
      assert.equal(read(text), expected)
    })

  const yearLast: [string, string, string][] = [
    ['01.09.2026', '2026-09-01T00:00:00.000Z', '2026-01-09T00:00:00.000Z'],
    ['1/9/2026 14:05', '2026-09-01T14:05:00.000Z', '2026-01-09T14:05:00.000Z'],
    ['01-09-2026, 14:05:30.25 +02:00', '2026-09-01T12:05:30.250Z', '2026-01-09T12:05:30.250Z'],
    ['2026-09-01', '2026-09-01T00:00:00.000Z', '2026-09-01T00:00:00.000Z'],
  ]
  for (const [text, dayFirst, monthFirst] of yearLast)
    it(`is read from ${text} if the order of day and month is known`, () => {
      const ordered = (dateOrder: 'dmy' | 'mdy') => formatTime(readTime(text, { zone: 'UTC', dateOrder }, 'at')!)
      assert.deepEqual([ordered('dmy'), ordered('mdy')], [dayFirst, monthFirst])
    })

  it('is null for a date that does not exist in the known order, or that mixes separators', () => {
    for (const text of ['31.09.2026', '09.31.2026', '01.09.26', '01.09/2026', '01.09.2026 25:00', '2.30.2026 14:05'])
      assert.equal(readTime(text, { zone: 'UTC', dateOrder: 'dmy' }, 'at'), null, text)
  })

  it('is null for a text that is not a calendar date', () => {
    for (const text of [
      '',
      'now',
      '2024-13-01',
      '2023-02-29',
      '2024-05-01T25:00:00Z',
      '2024-05-01T12:00:00+99:00',
      '1.5.2024',
    ])
      assert.equal(read(text), null, text)
    for (const value of [true, null, [], {}]) assert.equal(read(value), null)
  })

  it('is read from a number in the unit that its size implies, exact to the microsecond', () => {
    const noon = '2024-05-01T12:00:00.123456Z'
    const seconds = ['1714564800.123456', '1714564800.1234567']
    const nanoseconds = ['1714564800123456789', '1714564800123456800', '1714564800123456000']
    for (const literal of [...seconds, '1714564800123.456', '1714564800123456', ...nanoseconds]) {
      assert.equal(read(parseJson(literal)), noon, literal)
      assert.equal(read(literal), noon, `${literal} as a text`)
    }
    const edges = ['100000000000', '99999999999', '100000000000000', '99999999999999', '100000000000000000']
    const years = edges.map(literal => new Date(readTime(literal, { zone: null }, 'at')! / usPerMs).getUTCFullYear())
    assert.deepEqual(years, [1973, 2255, 1973, 2255, 1973], 'later times than a safe integer are clamped')
    assert.equal(formatTime(readTime(1_714_564_800, { zone: null, unit: 'ms' }, 'at')!), '1970-01-20T20:16:04.800Z')
  })

  it('needs a configured zone for a text without a zone', () => {
    assert.throws(() => read('2024-05-01 12:00:00', null), { reason: 'timestamp_zone_unknown', field: 'at' })
    assert.equal(read('2024-05-01 12:00:00', 'Europe/Berlin'), '2024-05-01T10:00:00.000Z')
    assert.equal(read('2024-01-01 12:00:00.5', 'Europe/Berlin'), '2024-01-01T11:00:00.500Z')
    assert.equal(read('2024-05-01T12:00:00Z', 'Europe/Berlin'), '2024-05-01T12:00:00.000Z')
  })

  it('is the earlier of two if a clock change repeats the hour, and is moved forward if the hour is skipped', () => {
    assert.equal(read('2024-10-27 02:30:00', 'Europe/Berlin'), '2024-10-27T00:30:00.000Z')
    assert.equal(read('2024-03-31 02:30:00', 'Europe/Berlin'), '2024-03-31T01:30:00.000Z')
  })

  it('is right when clocks change a minute after midnight, as in St. John’s in 2010', () => {
    const times = ['00:00:30', '00:05:00'].map(time => read(`2010-11-07 ${time}`, 'America/St_Johns'))
    assert.deepEqual(times, ['2010-11-07T02:30:30.000Z', '2010-11-07T03:35:00.000Z'])
  })

  it('is converted from local time in any zone and at any hour', () => {
    const zone = fc.constantFrom(
      'Asia/Kolkata',
      'America/Los_Angeles',
      'Australia/Lord_Howe',
      'Pacific/Apia',
      'Asia/Kathmandu',
    )
    const seconds = fc.integer({ min: Date.UTC(1972, 0) / 1000, max: Date.UTC(2030, 0) / 1000 })
    fc.assert(
      fc.property(zone, seconds, (name, second) => {
        const shown = Temporal.Instant.fromEpochMilliseconds(second * 1000)
          .toZonedDateTimeISO(name)
          .toPlainDateTime()
        const wallUs = Date.parse(`${shown.toString({ smallestUnit: 'second' })}Z`) * usPerMs
        const utcMs = wallClockToUtc(wallUs, name) / usPerMs
        assert.equal(
          Temporal.Instant.fromEpochMilliseconds(utcMs).toZonedDateTimeISO(name).toPlainDateTime().equals(shown),
          true,
        )
      }),
    )
  })

  it('is formatted with three fractional digits, or six if it has microseconds', () => {
    assert.equal(formatTime(0), '1970-01-01T00:00:00.000Z')
    assert.equal(formatTime(1_001), '1970-01-01T00:00:00.001001Z')
    assert.equal(utcDay(Date.UTC(2024, 4, 1, 23, 59, 59) * usPerMs), '2024-05-01')
  })
})

describe('the name of a zone', () => {
  it('is an IANA name, never a fixed offset', () => {
    assert.deepEqual(['Europe/Berlin', 'UTC', 'Asia/Kolkata'].map(isZoneName), [true, true, true])
    assert.deepEqual(
      ['+02:00', '-0700', 'GMT+2', 'Etc/GMT-2', 'Mars/Olympus', '', 'EST', 'MST', 'hst'].map(isZoneName),
      Array(9).fill(false),
    )
  })
})

describe('the time of a record', () => {
  const nowMs = Date.UTC(2026, 0, 15)
  const readAt = (at: JsonValue | undefined, holdLiveWindow = false) =>
    readRecordTime(at, { zone: 'UTC' }, { nowMs, holdLiveWindow }, 'at')

  it('is exact to the microsecond, and at most an hour ahead of the clock', () => {
    assert.equal(readAt('2024-05-01 12:00:00.123456'), Date.UTC(2024, 4, 1, 12) * 1_000 + 123_456)
    assert.equal(readAt('2026-01-15T01:00:00Z'), Date.UTC(2026, 0, 15, 1) * 1_000)
  })

  it('is refused within the live window only if the job excludes that window', () => {
    const recent = '2026-01-13T00:00:01Z'
    assert.equal(readAt(recent), Date.UTC(2026, 0, 13, 0, 0, 1) * 1_000)
    assert.throws(() => readAt(recent, true), { reason: 'within_live_window', field: 'at' })
    assert.equal(readAt('2026-01-13T00:00:00Z', true), Date.UTC(2026, 0, 13) * 1_000)
  })

  const refused: readonly (readonly [JsonValue | undefined, RecordRejectReason])[] = [
    [undefined, 'timestamp_missing'],
    [null, 'timestamp_missing'],
    ['(not set)', 'timestamp_missing'],
    ['yesterday', 'timestamp_invalid'],
    ['2024-02-30 12:00:00', 'timestamp_invalid'],
    [true, 'timestamp_invalid'],
    ['1970-01-20T20:16:04Z', 'timestamp_out_of_range'],
    ['2026-01-15T01:00:01Z', 'timestamp_future'],
  ]
  for (const [value, reason] of refused)
    it(`is refused with the reason ${reason} for ${JSON.stringify(value)}`, () => {
      assert.throws(() => readAt(value), new RecordReject(reason, 'at'))
    })
})
