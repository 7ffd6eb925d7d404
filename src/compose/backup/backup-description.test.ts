import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type BackupDescription, decodeBackupDescription, encodeBackupDescription } from './backup-description.ts'

const whole: BackupDescription = {
  format: 2,
  pennon: '0.2.0',
  createdAt: '2026-11-27T00:00:00.000Z',
  schema: 20,
  positions: { main: 7 },
  events: true,
  rows: { state: { person: 2 }, events: { events: 3 } },
}

describe('the description of a backup', () => {
  it('is decoded to the same values that were encoded', () => {
    assert.deepEqual(decodeBackupDescription(encodeBackupDescription(whole)), whole)
  })

  it('is refused in an earlier format, with the name of the last version that reads that format', () => {
    const { rows: _, ...before } = { ...whole, format: 1, schema: null }
    const expected =
      'was written by Pennon 0.1.0 or earlier, and 0.1.0 is the last version that can open it: restore it with that version'
    assert.equal(decodeBackupDescription(JSON.stringify(before)), expected)
  })

  it('is refused if damaged, and the message shows where in printable characters', () => {
    const hostile = '\u001b[2J\u009b31m\n'
    for (const [text, expected] of [
      ['{"format": 1,', /^is not valid JSON$/],
      ['null', /^is damaged$/],
      ['[]', /^is damaged$/],
      ['{}', /^is damaged$/],
      [JSON.stringify({ ...whole, positions: 'all' }), /^is damaged at \/positions$/],
      [JSON.stringify({ ...whole, positions: { main: -1 } }), /^is damaged at \/positions\/main$/],
      [JSON.stringify({ ...whole, positions: { [hostile]: 1 } }), /^is damaged at \/positions\/[\x20-\x7e]+$/],
      [JSON.stringify({ ...whole, pennon: hostile }), /^is damaged at \/pennon$/],
      [JSON.stringify({ ...whole, createdAt: hostile }), /^is damaged at \/createdAt$/],
      [JSON.stringify({ ...whole, schema: '20' }), /^is damaged at \/schema$/],
      [
        JSON.stringify({ ...whole, rows: { state: {}, events: { events: 1.5 } } }),
        /^is damaged at \/rows\/events\/events$/,
      ],
      [
        JSON.stringify({ ...whole, format: 3, pennon: hostile }),
        /^has format 3, which this version cannot read; it was written by Pennon [\x20-\x7e]+$/,
      ],
    ] as const) {
      const decoded = decodeBackupDescription(text)
      assert.match(typeof decoded === 'string' ? decoded : 'it was taken', expected)
    }
  })
})
