import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { dayMs } from '#core/time.ts'
import { utcDay } from '#core/usage.ts'
import {
  checkFetchRange,
  type DayWindow,
  divideIntoWindows,
  parseDay,
  splitWindow,
  days as wholeDays,
  hours as wholeHours,
} from './fetch-windows.ts'

const ranges = fc
  .tuple(fc.integer({ min: 0, max: 25_000 }), fc.integer({ min: 0, max: 900 }))
  .map(([first, more]) => ({ from: utcDay(first * dayMs), to: utcDay((first + more) * dayMs) }))

function daysIn({ from, to }: DayWindow): string[] {
  return divideIntoWindows({ from, to }, 1).map(window => window.from)
}

describe('windows with inclusive ends', () => {
  it('cover each day of the range once, in order', () => {
    fc.assert(
      fc.property(ranges, fc.integer({ min: 1, max: 365 }), (range, days) => {
        const held = divideIntoWindows(range, days).flatMap(daysIn)
        assert.deepEqual(held, daysIn(range))
        assert.equal(held.length, (Date.parse(range.to) - Date.parse(range.from)) / dayMs + 1)
      }),
    )
  })

  it('split into halves that cover the same days', () => {
    fc.assert(
      fc.property(ranges, range => {
        const halves = splitWindow(range, wholeDays)
        if (halves === null) assert.equal(range.from, range.to)
        else assert.deepEqual(halves.flatMap(daysIn), daysIn(range))
      }),
    )
  })

  it('split down to single hours, each once, also across month ends', () => {
    const days = { from: '2024-02-28', to: '2024-03-01' }
    const hours: string[] = []
    const split = (window: DayWindow) => {
      const halves = splitWindow(window, wholeHours)
      if (halves === null) hours.push(window.from)
      else halves.forEach(split)
    }
    for (const window of divideIntoWindows(days, 2, wholeHours)) split(window)
    assert.equal(hours.length, 72)
    assert.deepEqual(hours, [...new Set(hours)].sort())
    assert.deepEqual([hours[0], hours.at(-1)], ['20240228T00', '20240301T23'])
  })
})

describe('a range of days', () => {
  const nowMs = Date.parse('2026-01-15T11:59:59Z')

  it('may only include days that have ended in every zone, if the zone of the project is unknown', () => {
    const refused = { from: '2026-01-01', to: '2026-01-14' }
    assert.throws(() => checkFetchRange(refused, nowMs, 0, 'any'), /Fetch up to 2026-01-13/)
    checkFetchRange(refused, nowMs + 1_000, 0, 'any')
    checkFetchRange(refused, nowMs, 3_600_000, 'utc')
  })

  it('must consist of calendar days in order', () => {
    assert.throws(() => checkFetchRange({ from: '2024-02-02', to: '2024-02-01' }, nowMs, 0, 'utc'), /later than/)
    for (const text of ['2024-02-30', '2024-2-1', '20240201', '', 'yesterday', '2024-02-01T00:00:00Z'])
      assert.throws(() => parseDay(text, 'from'), /from must be a day/, text)
  })
})
