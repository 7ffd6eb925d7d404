import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  computeRetryWaitMs,
  createMonotonicClock,
  type FetchClock,
  formatWaitSpan,
  parseRetryAfter,
  sleepUntil,
} from './waiting.ts'

/** A machine whose clock is set back by `setBackMs` in the middle of a wait. */
function machine(setBackAfterMs: number, setBackMs: number) {
  let [sleptMs, offMs] = [0, 0]
  const clock: FetchClock = {
    nowMs: createMonotonicClock(() => 1_000_000_000 + sleptMs - offMs),
    sleep: async ms => {
      sleptMs += ms
      if (sleptMs >= setBackAfterMs) offMs = setBackMs
    },
    random: () => 0.5,
  }
  return { clock, sleptMs: () => sleptMs }
}

it('setting the clock back during a wait does not lengthen it', async () => {
  const { clock, sleptMs } = machine(20_000, 86_400_000)
  const untilMs = clock.nowMs() + 60_000
  await sleepUntil(clock, () => untilMs, new AbortController().signal)
  // Only the step in which it happens is repeated.
  assert.ok(sleptMs() <= 65_000, `${sleptMs()}`)
})

it('a clock that only moves forward follows the machine’s clock again once that has caught up', () => {
  const shown = [10, 20, 5, 6, 15, 30, 31]
  const now = createMonotonicClock(() => shown.shift()!)
  assert.deepEqual(Array.from({ length: 7 }, now), [10, 20, 20, 21, 30, 30, 31])
})

describe('the wait before a retry', () => {
  it('doubles from a second to a minute, with full jitter', () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 50].map(tries => computeRetryWaitMs(tries, 0.9999999, null))
    assert.deepEqual(longest, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
    assert.equal(computeRetryWaitMs(7, 0, null), 0)
  })

  it('is never shorter than Retry-After asks for', () => {
    assert.equal(computeRetryWaitMs(1, 0.5, 840_000), 840_000)
    assert.equal(computeRetryWaitMs(7, 0.5, 0), 30_000)
  })

  it('is read from Retry-After in seconds or as a date, and from no other text', () => {
    const nowMs = Date.UTC(2026, 0, 15)
    assert.equal(parseRetryAfter('120', nowMs), 120_000)
    assert.equal(parseRetryAfter('Thu, 15 Jan 2026 00:02:00 GMT', nowMs), 120_000)
    assert.equal(parseRetryAfter('Wed, 14 Jan 2026 00:02:00 GMT', nowMs), 0)
    assert.equal(parseRetryAfter('soon', nowMs), null)
    assert.equal(parseRetryAfter(undefined, nowMs), null)
  })
})

it('a time span is formatted in the largest readable unit', () => {
  const spans = [200, 45_000, 60_000, 14 * 60_000, 119 * 60_000, 7_200_000, 65_700_000, 300 * 3_600_000]
  assert.deepEqual(spans.map(formatWaitSpan), [
    '1 s',
    '45 s',
    '1 min',
    '14 min',
    '119 min',
    '2 h',
    '18.3 h',
    '12.5 days',
  ])
})
