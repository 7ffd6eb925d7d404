import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonValue } from '../../json.ts'
import { rawNumber } from '../../json.ts'
import { dateOfProperty, parseDateFilter } from './match-date.ts'

const nowMs = Date.parse('2026-03-31T12:00:00Z')

function iso(instant: bigint | null): string | null {
  return instant === null ? null : new Date(Number(instant / 1_000_000n)).toISOString()
}

function filterAt(text: string, timezone = 'UTC', at = nowMs): string | null {
  const filter = parseDateFilter(text, timezone)
  if (filter === null) return null
  return iso(filter.kind === 'fixed' ? filter.instant : filter.at(at))
}

function propertyAt(value: JsonValue, timezone = 'UTC'): string | null {
  return iso(dateOfProperty(value, timezone))
}

describe('dates', () => {
  it('read spans as the past, with or without a minus', () => {
    assert.equal(filterAt('-3h'), '2026-03-31T09:00:00.000Z')
    assert.equal(filterAt('2w'), '2026-03-17T12:00:00.000Z')
    assert.equal(filterAt('-1y'), '2025-03-31T12:00:00.000Z')
    assert.equal(filterAt('-00003h'), '2026-03-31T09:00:00.000Z')
    for (const text of ['10000d', '7', 'd', '7 d', '+7d', '-7D']) assert.equal(filterAt(text), null, text)
  })

  it('are cut to the length of the month at each step back', () => {
    assert.equal(filterAt('1m'), '2026-02-28T12:00:00.000Z')
    assert.equal(filterAt('2m'), '2026-01-28T12:00:00.000Z')
    assert.equal(filterAt('13m'), '2025-02-28T12:00:00.000Z')
    assert.equal(filterAt('9999m')?.slice(0, 4), '1192')
  })

  it('step on the wall clock of the project', () => {
    // Oslo went from +01:00 to +02:00 on 2026-03-29, so this day on the wall clock is only 23 hours.
    const at = Date.parse('2026-03-29T10:00:00Z')
    assert.equal(filterAt('-1d', 'Europe/Oslo', at), '2026-03-28T11:00:00.000Z')
  })

  it('read zone-less times in the zone of the project, and refuse those that a clock change skips', () => {
    assert.equal(filterAt('2026-07-01', 'Europe/Oslo'), '2026-06-30T22:00:00.000Z')
    assert.equal(filterAt('2026-07-01 08:30', 'Asia/Kolkata'), '2026-07-01T03:00:00.000Z')
    assert.equal(filterAt('2026-03-29T02:30:00', 'Europe/Oslo'), null)
  })

  it('read RFC 3339 with a blank before the offset, and refuse shapes far from it', () => {
    assert.equal(filterAt('2022-04-05 12:34:12 +01:00'), '2022-04-05T11:34:12.000Z')
    assert.equal(filterAt('2022-04-05t12:34:12.5z'), '2022-04-05T12:34:12.500Z')
    for (const text of [
      '2022-02-30',
      '2022-04-05T25:00:00Z',
      '05/04/2022',
      '2022-4-5',
      '2022-04-05T12:00:00+25:00',
      '2022-04-05T12:00:00+0',
      '2022-04-05T12:00:00  Z',
      '2022-04-05T12:00:00 CET',
      '2022-04-05TUTC',
      '',
      '  ',
    ]) {
      assert.equal(filterAt(text), null, text)
    }
  })

  it('read the forms of a zone that events may have, and that both SDKs read', () => {
    for (const text of [
      '2022-04-05T12:34:12+0000',
      '2022-04-05T14:34:12+02',
      '2022-04-05T12:34:12 UTC',
      '2022-04-05 12:34:12 gmt',
      '2022-04-05 12:34:12 Z',
      '  2022-04-05T12:34:12Z ',
      '2022-04-05T14:34:12 +0200',
      '\t2022-04-05t12:34:12\n',
    ]) {
      assert.equal(filterAt(text), '2022-04-05T12:34:12.000Z', text)
      assert.equal(propertyAt(text), '2022-04-05T12:34:12.000Z', text)
    }
    assert.equal(filterAt('2022-04-05T12:34Z', 'Europe/Oslo'), '2022-04-05T12:34:00.000Z')
    assert.equal(filterAt('2022-04-05 12:34-0130'), '2022-04-05T14:04:00.000Z')
    assert.equal(filterAt(' 2026-07-01 ', 'Europe/Oslo'), '2026-06-30T22:00:00.000Z')
  })

  it('read numbers and numeric texts as epoch seconds, to the nanosecond', () => {
    assert.equal(propertyAt('1768000000'), '2026-01-09T23:06:40.000Z')
    assert.equal(dateOfProperty(rawNumber('1.000000001'), 'UTC'), 1_000_000_001n)
    assert.equal(dateOfProperty(-1.5, 'UTC'), -2_000_000_000n)
    assert.equal(dateOfProperty('nan', 'UTC'), 0n)
    for (const value of ['inf', 1e300, true, null, 'soon', {}]) assert.equal(dateOfProperty(value, 'UTC'), null)
  })
})
