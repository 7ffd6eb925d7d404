import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { computeLeastDurationMs, computeNextCallMs } from './call-limits.ts'
import { formatWaitSpan } from './waiting.ts'

const limits = { perSecond: 3, perHour: 60, atOnce: 4 }

describe('call limits', () => {
  it('are never exceeded by calls that are made as soon as allowed', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 200_000 }), { maxLength: 200 }), gapsMs => {
        const callsMs: number[] = []
        let nowMs = 0
        for (const gapMs of gapsMs) {
          nowMs = computeNextCallMs(callsMs, limits, nowMs + gapMs)
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

  it('allow a call at once if there are no limits, or if the calls are below them', () => {
    assert.equal(computeNextCallMs([1, 2, 3, 4, 5], { perSecond: null, perHour: null, atOnce: 1 }, 6), 6)
    assert.equal(computeNextCallMs([1, 2], limits, 6), 6)
    assert.equal(computeNextCallMs([1, 2, 3], limits, 6), 1_001)
  })

  it('imply that fetching three years from Mixpanel day by day takes 1,095 calls and 18.3 hours', () => {
    assert.equal(formatWaitSpan(computeLeastDurationMs(1_095, limits)), '18.3 h')
    assert.equal(computeLeastDurationMs(1_095, { perSecond: null, perHour: null, atOnce: 1 }), 0)
  })
})
