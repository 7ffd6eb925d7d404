import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonValue } from '#core/json.ts'
import { convertRecord } from './convert-record.ts'
import { readRecordTime } from './record-time.ts'

const nowMs = Date.UTC(2026, 0, 15)

describe('the time of a record', () => {
  it('is exact to the microsecond, and at most an hour ahead of the clock', () => {
    assert.equal(read('2024-05-01 12:00:00.123456'), Date.UTC(2024, 4, 1, 12) * 1_000 + 123_456)
    assert.equal(read('2026-01-15T01:00:00Z'), Date.UTC(2026, 0, 15, 1) * 1_000)
  })

  it('is refused within the live window only if the job holds that back', () => {
    const recent = '2026-01-13T00:00:01Z'
    assert.equal(read(recent), Date.UTC(2026, 0, 13, 0, 0, 1) * 1_000)
    assert.throws(() => read(recent, true), { reason: 'within_live_window', field: 'at' })
    assert.equal(read('2026-01-13T00:00:00Z', true), Date.UTC(2026, 0, 13) * 1_000)
  })

  const refused: readonly (readonly [JsonValue | undefined, string])[] = [
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
    it(`is refused as ${reason} for ${JSON.stringify(value)}`, () => {
      const converter = { convert: () => ({ events: [], time: read(value) }) }
      const record = { value: {}, table: null, ordinal: 1 }
      const outcome = convertRecord(converter, record)
      assert.partialDeepStrictEqual(outcome, { rejected: { reason, field: 'at' } })
    })
})

function read(value: JsonValue | undefined, holdLiveWindow = false): number {
  return readRecordTime(value, { zone: 'UTC' }, { nowMs, holdLiveWindow }, 'at')
}
