import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createImportRateLimiter } from './import-pace.ts'

/** A project with few waiting events, beside one with many. */
const lightProject = 2

function aPace() {
  const clock = fixedClock(1_000_000)
  let appendedBeforeMs = clock.nowMs()
  const pace = createImportRateLimiter({
    clock,
    processedUntil: () => ({ appendedBeforeMs, deferred: null }),
    isBelowShare: projectId => projectId === lightProject,
  })
  return {
    clock,
    pace,
    workTo: (ms: number) => {
      appendedBeforeMs = ms
    },
    processed: () => {
      appendedBeforeMs = clock.nowMs()
    },
    /** Accepts and stores a batch. */
    send: (projectId: number) => {
      assert.equal(pace.pauseSeconds(projectId), null)
      pace.noteStored()
    },
  }
}

describe('the pace of imports', () => {
  it('lets an importer start after a long idle time, although the worker has not reported since', () => {
    const { clock, pace, send } = aPace()
    clock.advance(3_600_000)
    const before = pace.rate(1)
    send(1)
    clock.advance(2_000)
    assert.ok(pace.rate(1) >= before)
    assert.equal(pace.pauseSeconds(1), null)
  })

  it('slows importers down while imports wait to be processed, and asks for a pause when the wait is long', () => {
    const { clock, pace, processed, send } = aPace()
    clock.advance(1)
    send(1)
    const rates: number[] = []
    for (let second = 0; second < 29; second++) {
      clock.advance(1_000)
      rates.push(pace.rate(1))
      send(1)
    }
    assert.ok(rates.at(-1)! < rates[0]!)
    clock.advance(2_000)
    assert.ok(pace.pauseSeconds(1)! >= 1)
    processed()
    assert.equal(pace.pauseSeconds(1), null)
  })

  it('pauses importers until the worker has nearly caught up, but not until the last event is processed', () => {
    const { clock, pace, send, workTo } = aPace()
    clock.advance(1)
    const startMs = clock.nowMs()
    for (let second = 0; second < 20; second++) {
      send(1)
      clock.advance(1_000)
    }
    workTo(startMs + 1)
    clock.advance(15_000)
    assert.equal(
      pace.pauseSeconds(1),
      null,
      'the waiting events arrived within 20 s, although the oldest exceeds the limit for a pause',
    )
    send(1)
    assert.equal(pace.pauseSeconds(1), 20)
    // The worker is as fast as the importer was, so the age of the oldest waiting event stays the same.
    workTo(startMs + 6_000)
    clock.advance(6_000)
    assert.equal(pace.pauseSeconds(1), null)
  })

  it('does not slow or pause a project with few waiting events because of another project', () => {
    const { clock, pace } = aPace()
    const first = pace.rate(lightProject)
    for (let second = 0; second < 60; second++) {
      pace.noteStored()
      clock.advance(1_000)
      pace.rate(1)
      assert.ok(pace.rate(lightProject) >= first)
    }
    assert.ok(pace.rate(1) < first / 2)
    assert.ok(pace.pauseSeconds(1)! >= 1)
    assert.equal(pace.pauseSeconds(lightProject), null)
  })

  it('regains its rate within a minute after a slowdown, even if slow importers ask rarely', () => {
    const { clock, pace, processed, send } = aPace()
    clock.advance(1)
    const first = pace.rate(1)
    send(1)
    for (let second = 0; second < 29; second++) {
      clock.advance(1_000)
      pace.rate(1)
    }
    const slowed = pace.rate(1)
    assert.ok(slowed < first / 2 && slowed > first / 10, `${first} → ${slowed}`)
    processed()
    const startMs = clock.nowMs()
    while (pace.rate(1) < first) {
      clock.advance(5_000 / (pace.rate(1) / 1_000))
      processed()
    }
    assert.ok(clock.nowMs() - startMs < 60_000, String(clock.nowMs() - startMs))
  })

  it('ignores requests that stored nothing, and pauses only for a limited time for events that are never processed', () => {
    const { clock, pace, send } = aPace()
    for (let second = 0; second < 100; second++) {
      clock.advance(1_000)
      assert.equal(pace.pauseSeconds(1), null)
    }
    send(1)
    clock.advance(100_000)
    assert.ok(pace.pauseSeconds(1)! >= 1)
    clock.advance(300_000)
    assert.equal(pace.pauseSeconds(1), null)
  })
})
