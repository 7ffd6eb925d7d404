import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countSecondsUntil, formatSeconds } from './countdown.ts'

const nowMs = Date.parse('2026-11-30T10:00:00Z')

describe('a countdown', () => {
  it('is 0 only when the time has come', () => {
    assert.deepEqual(
      [2_001, 2_000, 1, 0, -5_000].map(ms => countSecondsUntil(nowMs + ms, nowMs)),
      [3, 2, 1, 0, 0],
    )
  })

  it('is shown in two units at most', () => {
    assert.deepEqual([0, 40, 60, 125, 3_600, 3_780].map(formatSeconds), [
      '0 s',
      '40 s',
      '1 min',
      '2 min 5 s',
      '1 h',
      '1 h 3 min',
    ])
  })
})
