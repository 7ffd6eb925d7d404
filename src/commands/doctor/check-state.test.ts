import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dayMs } from '#core/time.ts'
import type { TrustedTime } from '#core/trusted-time.ts'
import { toTrustedTimeFinding } from './check-state.ts'

const atMs = Date.parse('2026-11-27T12:00:00Z')
const hourMs = 3_600_000

describe('pennon doctor’s check of deletion by age', () => {
  const cases: readonly {
    readonly of: string
    readonly time: TrustedTime | null
    readonly found: RegExp
    readonly isWarning?: true
  }[] = [
    {
      of: 'a state that no worker has used',
      time: null,
      found: /^nothing is deleted by age yet: deletion starts once .*\(so far 0 of 24 h\)$/,
    },
    {
      of: 'the first day of running',
      time: { atMs: 7 * hourMs, aheadMs: atMs, stoodMs: 7 * hourMs },
      found: /^nothing is deleted by age yet: deletion starts once .*\(so far 7\.0 of 24 h\)$/,
    },
    {
      of: 'a clock that is believed',
      time: { atMs, aheadMs: 0, stoodMs: 0 },
      found: /^uses the system clock, as of 2026-11-27T12:00:00\.000Z$/,
    },
    {
      of: 'a clock that has jumped ahead',
      time: { atMs, aheadMs: 31 * dayMs, stoodMs: 2 * hourMs },
      found: /^the clock is 31\.0 days ahead of .* deletion by age uses 2026-11-27T12:00:00\.000Z$/,
      isWarning: true,
    },
    {
      of: 'a clock that has jumped back',
      time: { atMs, aheadMs: -1.5 * dayMs, stoodMs: 0 },
      found: /^the clock is 1\.5 days behind the expected time/,
      isWarning: true,
    },
  ]
  for (const { of, time, found, isWarning } of cases)
    it(`has a good result for ${of}`, () => {
      const finding = toTrustedTimeFinding(time)
      assert.match(finding.found, found)
      assert.equal(finding.isGood, true)
      if (isWarning) assert.match(finding.remedy!, /if the clock is wrong, set it\. .*24 h\)$/)
      else assert.equal(finding.remedy, undefined)
    })
})
