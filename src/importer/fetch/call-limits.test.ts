import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { leastDurationMs, nextCallAtMs } from './call-limits.ts'
import { formatSpan } from './describe-wait.ts'
import { parseRetryAfter, retryWaitMs } from './retry-wait.ts'

const limits = { perSecond: 3, perHour: 60, atOnce: 4 }

describe('call limits', () => {
  it('calls made as soon as the limits allow never exceed them', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 200_000 }), { maxLength: 200 }), gapsMs => {
        const callsMs: number[] = []
        let nowMs = 0
        for (const gapMs of gapsMs) {
          nowMs = nextCallAtMs(callsMs, limits, nowMs + gapMs)
          callsMs.push(nowMs)
        }
        for (const at of callsMs) {
          const within = (spanMs: number) => callsMs.filter(call => call >= at && call < at + spanMs).length
          assert.ok(within(1_000) <= 3)
          assert.ok(within(3_600_000) <= 60)
        }
      }),
    )
  })

  it('a call is allowed at once without limits, or below them', () => {
    assert.equal(nextCallAtMs([1, 2, 3, 4, 5], { perSecond: null, perHour: null, atOnce: 1 }, 6), 6)
    assert.equal(nextCallAtMs([1, 2], limits, 6), 6)
    assert.equal(nextCallAtMs([1, 2, 3], limits, 6), 1_001)
  })

  it('three years of Mixpanel by day take 1,095 calls and 18.3 hours', () => {
    assert.equal(formatSpan(leastDurationMs(1_095, limits)), '18.3 h')
    assert.equal(leastDurationMs(1_095, { perSecond: null, perHour: null, atOnce: 1 }), 0)
  })
})

describe('the wait before a retry', () => {
  it('doubles from a second to a minute, with full jitter', () => {
    const longest = [1, 2, 3, 4, 5, 6, 7, 50].map(tries => retryWaitMs(tries, 0.9999999, null))
    assert.deepEqual(longest, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000])
    assert.equal(retryWaitMs(7, 0, null), 0)
  })

  it('is never shorter than Retry-After asks for', () => {
    assert.equal(retryWaitMs(1, 0.5, 840_000), 840_000)
    assert.equal(retryWaitMs(7, 0.5, 0), 30_000)
  })

  it('is read from seconds and from dates, and from nothing else', () => {
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
  assert.deepEqual(spans.map(formatSpan), ['1 s', '45 s', '1 min', '14 min', '119 min', '2 h', '18.3 h', '12.5 days'])
})
