import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseTimestampText, parseZonedTimestampText } from './timestamp-text.ts'

const readable: readonly (readonly [text: string, iso: string])[] = [
  ['2025-07-01T10:00:00Z', '2025-07-01T10:00:00.000Z'],
  ['2025-07-01t10:00:00z', '2025-07-01T10:00:00.000Z'],
  [' 2025-07-01 10:00:00Z ', '2025-07-01T10:00:00.000Z'],
  ['2025-07-01T10:00:00.25', '2025-07-01T10:00:00.250Z'],
  ['6/30/2025 10:11:12', '2025-06-30T10:11:12.000Z'],
  ['1 Jul 2025 10:00:00 GMT', '2025-07-01T10:00:00.000Z'],
  ['2025-07-01T10:00:00.1Z', '2025-07-01T10:00:00.100Z'],
  ['2024-01-02T03:04:05.678000+00:00', '2024-01-02T03:04:05.678Z'],
  ['2024-01-02T03:04:05.123456789Z', '2024-01-02T03:04:05.123Z'],
  ['2025-06-30T14:05:04.805+03', '2025-06-30T11:05:04.805Z'],
  ['2025-06-30T14:05:04-05:30', '2025-06-30T19:35:04.000Z'],
  ['2025-06-30T14:05:04+0300', '2025-06-30T11:05:04.000Z'],
  ['2025-07-01 10:00:00', '2025-07-01T10:00:00.000Z'],
  ['2025-07-01T10:00:00', '2025-07-01T10:00:00.000Z'],
  ['2025-07-01 10:00', '2025-07-01T10:00:00.000Z'],
  ['2025-07-01 10:00:00 UTC', '2025-07-01T10:00:00.000Z'],
  ['2025-07-01 03:00 pm', '2025-07-01T15:00:00.000Z'],
  ['2025-06-29', '2025-06-29T00:00:00.000Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z'],
  ['2021-W43-5', '2021-10-29T00:00:00.000Z'],
  ['2020-W53-7', '2021-01-03T00:00:00.000Z'],
  ['2021-302', '2021-10-29T00:00:00.000Z'],
  ['2025-181', '2025-06-30T00:00:00.000Z'],
  ['2025/07/01', '2025-07-01T00:00:00.000Z'],
  ['2025/07/01 10:11:12', '2025-07-01T10:11:12.000Z'],
  ['7/1/2025 10:11', '2025-07-01T10:11:00.000Z'],
  ['07/01/2025', '2025-07-01T00:00:00.000Z'],
  ['Tue, 01 Jul 2025 10:00:00 +0000', '2025-07-01T10:00:00.000Z'],
  ['Tue, 1 Jul 2025 10:00:00 GMT', '2025-07-01T10:00:00.000Z'],
  ['01 Jul 2025 10:00:00 -0700', '2025-07-01T17:00:00.000Z'],
  ['1751364000', '2025-07-01T10:00:00.000Z'],
  ['1751364000.25', '2025-07-01T10:00:00.250Z'],
  ['1751364000000', '2025-07-01T10:00:00.000Z'],
  ['1969-12-31T23:59:59.5Z', '1969-12-31T23:59:59.500Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ['2016-12-31T23:59:60Z', '2017-01-01T00:00:00.000Z'],
]

const unreadable = [
  '',
  ' ',
  'now',
  '2025-07-01T10:00:61Z',
  '2025-07-01T10:00:00+24:00',
  '2025-07-01T10:00:00 Europe/Oslo',
  '-000001-01-01T00:00:00Z',
  '+012025-01-01T00:00:00Z',
  'yesterday',
  'not a date',
  '2025-02-30T10:00:00Z',
  '2025-02-29',
  '2025-13-01T10:00:00Z',
  '2025-00-10',
  '2025-07-01T24:00:00Z',
  '2025-07-01T10:60:00Z',
  '2025-07-01T10:00:00.Z',
  '2025-07-01T10:00:00+25:00',
  '2025-07-01T10:00:00Zulu',
  '2021-W54-1',
  '2021-W53-1',
  '2021-W00-1',
  '2021-366',
  '2021-000',
  '13/01/2025',
  '2025-07-01 13:00 pm',
  'Tue, 01 Foo 2025 10:00:00 +0000',
  '12',
  '17513640000000000',
  '٢٠٢٥-07-01T10:00:00Z',
  `2025-07-01T10:00:00.${'1'.repeat(100)}Z`,
]

describe('parseTimestampText', () => {
  for (const [text, iso] of readable) {
    it(`reads ${text}`, () => assert.equal(new Date(parseTimestampText(text)!).toISOString(), iso))
  }
  for (const text of unreadable) {
    it(`does not read "${text.slice(0, 40)}"`, () => assert.equal(parseTimestampText(text), null))
  }
  it('reads back every time that a Date can format', () => {
    fc.assert(
      fc.property(fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true }), date => {
        assert.equal(parseTimestampText(date.toISOString()), date.getTime())
        assert.equal(parseTimestampText(date.toISOString().slice(0, 10)), Math.floor(date.getTime() / 864e5) * 864e5)
      }),
    )
  })
  it('throws no exception, whatever the text', () => {
    fc.assert(fc.property(fc.string({ maxLength: 80 }), text => void parseTimestampText(text)))
  })
})

describe('parseZonedTimestampText', () => {
  it('returns nothing for a text without a time zone', () => {
    assert.equal(parseZonedTimestampText('2025-07-01T10:00:00'), null)
    assert.equal(parseZonedTimestampText('2025-07-01'), null)
    assert.equal(parseZonedTimestampText('2025-07-01T10:00:00+02:00'), Date.parse('2025-07-01T08:00:00Z'))
  })
})
