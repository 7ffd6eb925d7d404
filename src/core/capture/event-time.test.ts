import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  type EventTimeInput,
  resolveEventTime,
  resolveStrictEventTime,
  type StrictEventTimeInput,
} from './event-time.ts'

const receivedAtMs = Date.parse('2025-07-01T11:00:00Z')
const hourMs = 3_600_000

function timeOf(over: Partial<EventTimeInput>): string {
  const time = resolveEventTime({
    timestamp: null,
    offsetMs: null,
    ignoreSentAt: false,
    sentAtMs: null,
    receivedAtMs,
    historicalMigration: false,
    ...over,
  })
  return time.ok ? new Date(time.value).toISOString() : time.error
}

describe('resolveEventTime for a live event', () => {
  it('keeps a time exactly 23 h ahead, and replaces a time 1 ms later with the time of receipt', () => {
    assert.equal(timeOf({ timestamp: '2025-07-02T10:00:00.000Z' }), '2025-07-02T10:00:00.000Z')
    assert.equal(timeOf({ timestamp: '2025-07-02T10:00:00.001Z' }), '2025-07-01T11:00:00.000Z')
    assert.equal(timeOf({ offsetMs: -25 * hourMs }), '2025-07-01T11:00:00.000Z')
  })
  it('applies the limit on future times after correcting the client clock', () => {
    const aDayFast = receivedAtMs + 24 * hourMs
    assert.equal(timeOf({ timestamp: '2025-07-02T11:00:00Z', sentAtMs: aDayFast }), '2025-07-01T11:00:00.000Z')
    assert.equal(timeOf({ timestamp: '2025-07-02T10:30:00Z', sentAtMs: aDayFast }), '2025-07-01T10:30:00.000Z')
  })
  it('returns the time of receipt for text that cannot be read or cannot be stored', () => {
    for (const timestamp of ['soon', '1899-12-31T23:59:59Z', '2300-01-01T00:00:00Z']) {
      assert.equal(timeOf({ timestamp }), '2025-07-01T11:00:00.000Z')
    }
    assert.equal(timeOf({ timestamp: '1900-01-01T00:00:00Z' }), '1900-01-01T00:00:00.000Z')
  })
  it('returns 1970 if the offset leads to before the year 0, and the time of receipt for other times before 1900', () => {
    assert.equal(timeOf({ offsetMs: 1e15 }), '1970-01-01T00:00:00.000Z')
    assert.equal(timeOf({ offsetMs: 9e18 }), '1970-01-01T00:00:00.000Z')
    assert.equal(timeOf({ offsetMs: 1000 * 365 * 24 * hourMs }), '2025-07-01T11:00:00.000Z')
  })
})

describe('resolveEventTime for a historical migration', () => {
  const historicalMigration = true
  it('keeps the time as written: neither the send time nor the offset changes it', () => {
    const input = { timestamp: '2023-01-01T00:00:00Z', sentAtMs: receivedAtMs + 10_000, offsetMs: 5_000 }
    assert.equal(timeOf({ ...input, historicalMigration }), '2023-01-01T00:00:00.000Z')
  })
  it('returns the time of receipt if the time is missing or more than 23 h ahead', () => {
    assert.equal(timeOf({ timestamp: '2025-07-02T10:00:01Z', historicalMigration }), '2025-07-01T11:00:00.000Z')
    assert.equal(timeOf({ offsetMs: 5_000, historicalMigration }), '2025-07-01T11:00:00.000Z')
  })
  it('refuses unreadable text, empty text and times that cannot be stored', () => {
    for (const timestamp of ['soon', '', '1899-12-31T23:59:59Z', '2300-01-01T00:00:00Z']) {
      assert.equal(timeOf({ timestamp, historicalMigration }), 'timestamp_invalid')
    }
  })
})

function strictTimeOf(timestamp: string, over: Partial<StrictEventTimeInput> = {}): string {
  const time = resolveStrictEventTime({
    timestamp,
    disableSkewCorrection: false,
    sentAtMs: receivedAtMs,
    receivedAtMs,
    historicalMigration: false,
    ...over,
  })
  return time.ok ? new Date(time.value).toISOString() : time.error
}

describe('resolveStrictEventTime', () => {
  it('corrects the client clock, then applies the limit on the future', () => {
    const sentAtMs = receivedAtMs + 10_000
    assert.equal(strictTimeOf('2025-07-01T10:00:00Z', { sentAtMs }), '2025-07-01T09:59:50.000Z')
    assert.equal(strictTimeOf('2025-07-02T10:00:10Z', { sentAtMs }), '2025-07-02T10:00:00.000Z')
    assert.equal(strictTimeOf('2025-07-02T10:00:10.001Z', { sentAtMs }), '2025-07-01T11:00:00.000Z')
    assert.equal(strictTimeOf('2900-01-01T00:00:00Z', { sentAtMs }), '2025-07-01T11:00:00.000Z')
  })
  it('keeps a time unchanged, even in the future, when the client asks for that', () => {
    const over = { disableSkewCorrection: true, sentAtMs: receivedAtMs + 10_000 }
    assert.equal(strictTimeOf('2025-07-01T10:00:00Z', over), '2025-07-01T10:00:00.000Z')
    assert.equal(strictTimeOf('2027-07-01T10:00:00Z', over), '2027-07-01T10:00:00.000Z')
    assert.equal(strictTimeOf('2300-01-01T00:00:00Z', over), 'timestamp_invalid')
  })
  it('keeps an import’s time as written unless it is far in the future, whatever else the import asks for', () => {
    const over = { historicalMigration: true, disableSkewCorrection: true, sentAtMs: receivedAtMs + 10_000 }
    assert.equal(strictTimeOf('2023-01-01T00:00:00Z', over), '2023-01-01T00:00:00.000Z')
    assert.equal(strictTimeOf('2025-07-02T10:00:01Z', over), '2025-07-01T11:00:00.000Z')
    assert.equal(strictTimeOf('2300-01-01T00:00:00Z', over), 'timestamp_invalid')
  })
  it('refuses text without a time zone, lenient formats, and times that cannot be stored', () => {
    const texts = [
      '',
      'soon',
      '2025-07-01T10:00:00',
      '2025-07-01',
      '2025-07-01T10:00:00+03',
      '2025-07-01T10:00:00+0300',
    ]
    for (const text of [...texts, '1751364000', '1899-12-31T23:59:59Z', '2025-02-30T00:00:00Z'])
      assert.equal(strictTimeOf(text), 'timestamp_invalid', text)
    assert.equal(strictTimeOf('2025-07-01t13:00:00.123456789+03:00'), '2025-07-01T10:00:00.123Z')
    assert.equal(strictTimeOf('2025-07-01 07:00:00-03:00'), '2025-07-01T10:00:00.000Z')
  })
  it('never returns a time before the earliest storable one, however wrong the client clock is', () => {
    assert.equal(
      strictTimeOf('2025-07-01T10:00:00Z', { sentAtMs: Date.parse('9999-01-01T00:00:00Z') }),
      '1970-01-01T00:00:00.000Z',
    )
    assert.equal(
      strictTimeOf('2025-07-01T10:00:00Z', { sentAtMs: Date.parse('2225-07-01T00:00:00Z') }),
      '2025-07-01T11:00:00.000Z',
    )
  })
})
