import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type AttemptKind, type Attempts, admitAttempt } from './sign-in-throttle.ts'

/** Attempts as fast as they are admitted. @returns the wait before each. */
function waitsOf(kind: AttemptKind, times: number): number[] {
  const waits: number[] = []
  let seen: Attempts | null = null
  let nowMs = 1_000_000
  for (let n = 0; n < times; n++) {
    const first = admitAttempt(kind, seen, nowMs)
    waits.push(first.isAdmitted ? 0 : first.retryAfterMs)
    if (!first.isAdmitted) nowMs += first.retryAfterMs
    const admitted = admitAttempt(kind, seen, nowMs)
    assert.ok(admitted.isAdmitted)
    seen = admitted.attempts
  }
  return waits
}

describe('attempts to sign in', () => {
  it('on one account are free five times, then wait twice as long each time, at most 15 minutes', () => {
    const waits = waitsOf('account', 18)
    assert.deepEqual(waits.slice(0, 9), [0, 0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000])
    assert.deepEqual(waits.slice(-2), [900_000, 900_000])
  })

  it('from one address are admitted 20 times a minute', () => {
    assert.deepEqual(waitsOf('address', 42), [...Array(20).fill(0), 60_000, ...Array(19).fill(0), 60_000, 0])
  })

  it('on one account are forgotten after a day', () => {
    const seen = { count: 30, atMs: 0 }
    const admitted = admitAttempt('account', seen, 24 * 3_600_000)
    assert.deepEqual(admitted, { isAdmitted: true, attempts: { count: 1, atMs: 24 * 3_600_000 } })
  })

  it('count when the clocks of fronts differ a little, and do not go back in time', () => {
    assert.deepEqual(admitAttempt('user', { count: 7, atMs: 5_000 }, 4_000), { isAdmitted: false, retryAfterMs: 4_000 })
    assert.deepEqual(admitAttempt('user', { count: 2, atMs: 5_000 }, 4_000), {
      ...{ isAdmitted: true, attempts: { count: 3, atMs: 5_000 } },
    })
    assert.ok(!admitAttempt('address', { count: 20, atMs: 5_000 }, 4_000).isAdmitted)
  })

  it('do not wait longer because the clock was set back', () => {
    assert.ok(admitAttempt('account', { count: 30, atMs: 65_000 }, 4_000).isAdmitted)
    assert.ok(admitAttempt('address', { count: 20, atMs: 65_000 }, 4_000).isAdmitted)
  })
})
