import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { TrustedTime } from '#core/trusted-time.ts'
import { createLogger } from '#telemetry/log.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createRetentionClock } from './retention-clock.ts'

const startMs = Date.parse('2026-11-27T00:00:00Z')
const dayMs = 86_400_000

/** A worker whose state trusted the clock a minute ago. */
function world(stored: TrustedTime | null = { atMs: startMs - 60_000, aheadMs: 0, stoodMs: 0 }) {
  const clock = fixedClock('2026-11-27T00:00:00Z')
  const saved = { time: stored, count: 0 }
  const lines: string[] = []
  let [monotonicMs, mayRun] = [5_000, true]
  const newClock = () =>
    createRetentionClock({
      clock,
      store: {
        findTrustedTime: async () => saved.time,
        saveTrustedTime: async time => {
          saved.time = time
          saved.count++
        },
      },
      logger: createLogger({ level: 'info', process: 'work' }, { write: line => void lines.push(line) }),
      monotonicNowMs: () => monotonicMs,
      mayRun: async () => mayRun,
    })
  return {
    ...{ clock, saved, lines, newClock, retentionClock: newClock() },
    pass: (ms: number) => {
      monotonicMs += ms
      clock.advance(ms)
    },
    setMayRun: (may: boolean) => {
      mayRun = may
    },
  }
}

describe('the retention clock', () => {
  it('is 0 before its first update, then follows the wall clock, and is saved periodically', async () => {
    const { retentionClock, saved, pass } = world()
    assert.equal(retentionClock.nowMs(), 0)
    await retentionClock.checkNow()
    for (let look = 0; look < 119; look++) {
      pass(10_000)
      await retentionClock.checkNow()
    }
    assert.equal(retentionClock.nowMs(), startMs + 1_190_000)
    assert.equal(saved.count, 20)
  })

  it('stops and warns once if the wall clock jumps ahead, but at once follows a wall clock that jumps back', async () => {
    const { retentionClock, lines, clock, pass, saved } = world()
    await retentionClock.checkNow()
    clock.advance(31 * dayMs)
    for (const _ of [1, 2]) await retentionClock.checkNow()
    assert.deepEqual([retentionClock.nowMs(), retentionClock.isTrusted()], [startMs, false])
    assert.deepEqual(saved.time, { atMs: startMs, aheadMs: 31 * dayMs, stoodMs: 0 })
    clock.advance(-41 * dayMs)
    assert.equal(retentionClock.nowMs(), startMs - 10 * dayMs)
    clock.advance(10 * dayMs)
    pass(10_000)
    await retentionClock.checkNow()
    assert.deepEqual([retentionClock.nowMs(), retentionClock.isTrusted()], [startMs + 10_000, true])
    assert.deepEqual(
      lines.map(line => (JSON.parse(line) as { msg: string }).msg.split(':')[0]),
      ['the system clock differs from the expected time', 'the system clock is trusted again'],
    )
  })

  it('is 0 and logs nothing at the first update of a new instance', async () => {
    const { retentionClock, lines } = world(null)
    await retentionClock.checkNow()
    assert.deepEqual([retentionClock.nowMs(), retentionClock.isTrusted(), lines], [0, false, []])
  })

  it('also counts the running time of short-lived workers', async () => {
    const { newClock, saved, pass } = world(null)
    for (let run = 0; run < 220; run++) {
      const retentionClock = newClock()
      for (let look = 0; look < 45; look++) {
        await retentionClock.checkNow()
        pass(10_000)
      }
      // Off for an hour and a half.
      pass(5_400_000)
    }
    assert.ok(saved.time!.atMs > startMs)
  })

  it('is 0 while another worker deletes expired data, and then continues from the time saved by that worker', async () => {
    const { retentionClock, setMayRun, saved, clock } = world()
    await retentionClock.checkNow()
    setMayRun(false)
    await retentionClock.checkNow()
    assert.equal(retentionClock.nowMs(), 0)
    clock.advance(5 * dayMs)
    saved.time = { atMs: clock.nowMs() - 1_000, aheadMs: 0, stoodMs: 0 }
    setMayRun(true)
    await retentionClock.checkNow()
    assert.equal(retentionClock.nowMs(), clock.nowMs())
  })
})
