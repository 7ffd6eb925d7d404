import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type BackupDescription, decodeDescription, encodeDescription } from './backup-description.ts'

const whole: BackupDescription = {
  format: 1,
  pennon: '0.1.0',
  createdAt: '2026-11-27T00:00:00.000Z',
  schema: 15,
  positions: { main: 7 },
  events: true,
  rows: { state: { person: 2 }, events: { events: 3 } },
}

describe('the description of a backup', () => {
  it('comes out as it went in, and without counts as earlier versions wrote it', () => {
    assert.deepEqual(decodeDescription(encodeDescription(whole)), whole)
    const { rows: _, ...earlier } = whole
    assert.deepEqual(decodeDescription(JSON.stringify(earlier)), earlier)
  })

  it('that is damaged is refused with the place, in printable words', () => {
    const hostile = '\u001b[2J\u009b31m\n'
    for (const [text, why] of [
      ['{"format": 1,', /^is no JSON$/],
      ['null', /^is damaged$/],
      ['[]', /^is damaged$/],
      ['{}', /^is damaged$/],
      [JSON.stringify({ ...whole, positions: 'all' }), /^is damaged at \/positions$/],
      [JSON.stringify({ ...whole, positions: { main: -1 } }), /^is damaged at \/positions\/main$/],
      [JSON.stringify({ ...whole, positions: { [hostile]: 1 } }), /^is damaged at \/positions\/[\x20-\x7e]+$/],
      [JSON.stringify({ ...whole, pennon: hostile }), /^is damaged at \/pennon$/],
      [JSON.stringify({ ...whole, createdAt: hostile }), /^is damaged at \/createdAt$/],
      [JSON.stringify({ ...whole, schema: '15' }), /^is damaged at \/schema$/],
      [
        JSON.stringify({ ...whole, rows: { state: {}, events: { events: 1.5 } } }),
        /^is damaged at \/rows\/events\/events$/,
      ],
      [JSON.stringify({ ...whole, format: 2, pennon: hostile }), /^has format 2, [\x20-\x7e]+ wrote it$/],
    ] as const) {
      const decoded = decodeDescription(text)
      assert.match(typeof decoded === 'string' ? decoded : 'it was taken', why)
    }
  })
})
