import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dayMs } from './time.ts'
import {
  clockSettleMs,
  isTimeTrusted,
  type TrustedTime,
  updateTrustedTime,
  wasTimeEverTrusted,
} from './trusted-time.ts'

const hourMs = 3_600_000
const startMs = Date.UTC(2026, 10, 27)
const trusted: TrustedTime = { atMs: startMs, aheadMs: 0, stoodMs: 0 }

/** Looks every hour while the clock runs. @returns the time after each look. */
function looksEachHour(from: TrustedTime, nowMs: number, hours: number): TrustedTime[] {
  let last = from
  return Array.from({ length: hours }, (_, hour) => {
    last = updateTrustedTime(last, nowMs + hour * hourMs, hour === 0 ? 0 : hourMs)
    return last
  })
}

describe('the retention time', () => {
  it('follows a running clock, also across a restart', () => {
    assert.equal(looksEachHour(trusted, startMs, 48).at(-1)!.atMs, startMs + 47 * hourMs)
    assert.deepEqual(updateTrustedTime(trusted, startMs + 600_000, 0), { ...trusted, atMs: startMs + 600_000 })
  })

  for (const [what, jumpMs] of [
    ['ahead', 31 * dayMs],
    ['back', -31 * dayMs],
  ] as const)
    it(`advances with elapsed time after the clock jumped ${what}, and follows the clock after a day at the new time`, () => {
      const looks = looksEachHour(trusted, startMs + jumpMs, 25)
      const before = looks.slice(0, -1)
      assert.deepEqual(
        before.map(({ atMs }) => (atMs - startMs) / hourMs),
        before.map((_, hour) => hour),
      )
      assert.ok(!before.some(isTimeTrusted))
      assert.deepEqual(looks.at(-1), { atMs: startMs + jumpMs + clockSettleMs, aheadMs: 0, stoodMs: 0 })
    })

  it('ignores a clock that is ahead for less than a day, and follows it again as soon as it is corrected', () => {
    const ahead = looksEachHour(trusted, startMs + 31 * dayMs, 24).at(-1)!
    assert.deepEqual(updateTrustedTime(ahead, startMs + 24 * hourMs, hourMs), {
      ...trusted,
      atMs: startMs + 24 * hourMs,
    })
  })

  it('is never later than what the clock showed after one day of running, however often it jumps', () => {
    let last = trusted
    for (let day = 1; day < 40; day++) {
      last = looksEachHour(last, startMs + day * 31 * dayMs, 20).at(-1)!
      // Two days of 19 hours, which are a day of running.
      assert.ok(last.atMs <= startMs + (Math.max(0, day - 1) * 31 + 2) * dayMs)
    }
    assert.ok(last.atMs > startMs + 30 * 31 * dayMs)
  })

  it('adds up the observations of several short runs if the clock did not jump again', () => {
    let last = trusted
    for (let run = 0; run < 13; run++) last = looksEachHour(last, startMs + 31 * dayMs + run * 2 * hourMs, 3).at(-1)!
    assert.ok(isTimeTrusted(last))
  })

  it('does not begin until the clock was observed for a day', () => {
    const looks = looksEachHour(updateTrustedTime(null, startMs, 0), startMs, 25)
    assert.ok(looks.slice(0, -1).every(({ atMs }) => atMs < dayMs))
    assert.equal(looks.at(-1)!.atMs, startMs + dayMs)
  })

  for (const [what, first] of [
    ['that was never trusted', null],
    ['that was trusted once', trusted],
    [
      'of a version that began again each day',
      { atMs: 50 * dayMs, aheadMs: startMs - 51 * dayMs, stoodMs: 3 * hourMs },
    ],
  ] as const)
    it(`${what} is less than a week late on a machine that is on for eight hours a day`, () => {
      let last = first ?? updateTrustedTime(null, startMs, 0)
      for (let day = 0; day < 60; day++) {
        last = looksEachHour(last, startMs + day * dayMs, 9).at(-1)!
        if (day >= 3) assert.ok(startMs + day * dayMs - last.atMs < 7 * dayMs, `day ${day}`)
      }
    })

  it('begins again if the clock is set back before any time could be trusted', () => {
    const early = looksEachHour(updateTrustedTime(null, startMs + 31 * dayMs, 0), startMs + 31 * dayMs, 24).at(-1)!
    const looks = looksEachHour(early, startMs, 25)
    assert.ok(!looks.slice(0, -1).some(wasTimeEverTrusted))
    assert.ok(looks.at(-1)!.atMs === startMs + dayMs)
  })
})
