import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createImportPace } from './import-pace.ts'

function aPace() {
  const clock = fixedClock(1_000_000)
  let appendedBeforeMs = clock.nowMs()
  const pace = createImportPace({ clock, processedUntil: () => ({ appendedBeforeMs, deferred: null }) })
  return {
    clock,
    pace,
    processed: () => {
      appendedBeforeMs = clock.nowMs()
    },
  }
}

describe('the pace of imports', () => {
  it('lets an importer begin after any pause, though the worker has not reported since', () => {
    const { clock, pace } = aPace()
    clock.advance(3_600_000)
    const before = pace.rate()
    assert.equal(pace.pauseSeconds(), null)
    clock.advance(2_000)
    assert.ok(pace.rate() >= before)
    assert.equal(pace.pauseSeconds(), null)
  })

  it('slows down while imports wait, and asks for a pause when they wait for long', () => {
    const { clock, pace, processed } = aPace()
    assert.equal(pace.pauseSeconds(), null)
    const rates: number[] = []
    for (let second = 0; second < 29; second++) {
      clock.advance(1_000)
      rates.push(pace.rate())
      assert.equal(pace.pauseSeconds(), null)
    }
    assert.ok(rates.at(-1)! < rates[0]!)
    clock.advance(2_000)
    assert.ok(pace.pauseSeconds()! >= 1)
    processed()
    assert.equal(pace.pauseSeconds(), null)
  })

  it('comes back within a minute of what a slow moment took, though importers then ask seldom', () => {
    const { clock, pace, processed } = aPace()
    clock.advance(1)
    const first = pace.rate()
    assert.equal(pace.pauseSeconds(), null)
    for (let second = 0; second < 29; second++) {
      clock.advance(1_000)
      pace.rate()
    }
    const slowed = pace.rate()
    assert.ok(slowed < first / 2 && slowed > first / 10, `${first} → ${slowed}`)
    processed()
    const startMs = clock.nowMs()
    while (pace.rate() < first) {
      clock.advance(5_000 / (pace.rate() / 1_000))
      processed()
    }
    assert.ok(clock.nowMs() - startMs < 60_000, String(clock.nowMs() - startMs))
  })
})
