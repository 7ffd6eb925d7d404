import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createLogLimiter } from './log-limiter.ts'

it('a line is written at most once a minute, with the number of events since the last line', () => {
  let nowMs = 0
  const lines: [number, number][] = []
  const note = createLogLimiter(() => nowMs)
  for (nowMs of [0, 1, 59_999, 60_000, 60_001, 119_999, 500_000]) note(times => void lines.push([nowMs, times]))
  assert.deepEqual(lines, [
    [0, 1],
    [60_000, 3],
    [500_000, 3],
  ])
})
