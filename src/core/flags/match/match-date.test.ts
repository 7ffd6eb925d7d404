import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dateOfProperty, parseDateFilter } from './match-date.ts'

function iso(instant: bigint | null): string | null {
  return instant === null ? null : new Date(Number(instant / 1_000_000n)).toISOString()
}

function filterAt(text: string, timezone = 'UTC'): string | null {
  const filter = parseDateFilter(text, timezone)
  return iso(filter?.kind === 'fixed' ? filter.instant : null)
}

// Spans, wall clocks and numbers are in the flag vectors, which `tests/conformance` runs.
describe('dates of filters', () => {
  it('are read as RFC 3339, even with a space before the offset, and refused in very different formats', () => {
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

  it('accept every time zone format that events can have and that both SDKs read', () => {
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
      assert.equal(iso(dateOfProperty(text, 'UTC')), '2022-04-05T12:34:12.000Z', text)
    }
    assert.equal(filterAt('2022-04-05T12:34Z', 'Europe/Oslo'), '2022-04-05T12:34:00.000Z')
    assert.equal(filterAt('2022-04-05 12:34-0130'), '2022-04-05T14:04:00.000Z')
    assert.equal(filterAt(' 2026-07-01 ', 'Europe/Oslo'), '2026-06-30T22:00:00.000Z')
  })
})
