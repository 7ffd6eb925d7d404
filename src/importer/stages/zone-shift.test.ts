import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JobStopped } from '../job/job-paused.ts'
import { checkConfiguredZone } from './zone-shift.ts'

/** @param shifts by seconds. @returns why the job stops, or null. */
function stopOf(shifts: Record<string, number>, zone: string | null = null, more: Record<string, number> = {}) {
  const received = Object.entries(shifts).map(([seconds, count]) => ({ note: `zone_shift:${seconds}`, count }))
  const others = Object.entries(more).map(([note, count]) => ({ note, count }))
  try {
    checkConfiguredZone([...received, ...others], zone)
    return null
  } catch (error) {
    assert.ok(error instanceof JobStopped)
    return error.message
  }
}

describe('a wrong UTC offset in most records', () => {
  it('stops a job only if most records have the same offset, or one of two offsets in a zone with clock changes', () => {
    for (const shifts of [{}, { 0: 100 }, { 0: 50, 3600: 50 }, { 7200: 45, '-3600': 45, 0: 10 }])
      assert.equal(stopOf(shifts), null, JSON.stringify(shifts))
    assert.match(stopOf({ 0: 49, 3600: 51 })!, /the times of 51 % .* are \+01:00 away .* wall-clock times, not UTC/)
    assert.match(stopOf({ 7200: 48, 3600: 42, 0: 10 })!, /the times of 90 % of the records are \+02:00 away/)
  })

  it('is not inferred from late records or wrong clocks, whose offsets belong to no zone', () => {
    for (const seconds of [-900, 900, -1_800, 17_100, -46_800, 52_200, -864_000]) {
      assert.equal(stopOf({ [seconds]: 100 }), null)
      assert.equal(stopOf({ [seconds]: 100 }, 'UTC', { zone_shift_differs: 100 }), null)
      assert.match(stopOf({ [seconds]: 100 }, null, { zone_unproved: 1 })!, /^1 record is from before 2023.* or UTC if/)
      assert.match(stopOf({ [seconds]: 100, 7200: 1 }, null, { zone_unproved: 1 })!, /\+02:00/)
    }
    for (const seconds of [-43_200, -12_600, 20_700, 45_900, 50_400]) assert.notEqual(stopOf({ [seconds]: 1 }), null)
    assert.equal(stopOf({ 0: 1 }, null, { zone_unproved: 9 }), null, 'a single time of receipt reveals the zone')
  })

  it('stops a job if hardly any record fits the given zone, and the message names the offset and zones that fit', () => {
    const inNewYork = { '-14400': 60, '-18000': 40 }
    const cases: [shifts: Record<string, number>, differing: number, zone: string, said: RegExp | null][] = [
      [
        inNewYork,
        100,
        'Europe/Berlin',
        /zone Europe\/Berlin says: .* -04:00 .* America\/New_York or America\/Halifax;/,
      ],
      [{ 0: 20, 900: 9 }, 29, 'Europe/Berlin', /the times are \+00:00 away .* such as UTC or Europe\/London;/],
      [inNewYork, 96, 'Europe/Berlin', /-04:00 away/],
      // Some were received late; enough agree; too few have a time of receipt; no shift has a majority.
      [inNewYork, 60, 'America/New_York', null],
      [inNewYork, 95, 'Europe/Berlin', null],
      [{ 7200: 19 }, 19, 'UTC', null],
      [{ 7200: 19, '-900': 5 }, 24, 'UTC', null],
      [{ 7200: 15, '-7200': 15 }, 30, 'Europe/Moscow', null],
    ]
    for (const [shifts, differing, zone, said] of cases) {
      const stop = stopOf(shifts, zone, { zone_shift_differs: differing })
      if (said === null) assert.equal(stop, null)
      else assert.match(stop!, said)
    }
  })

  it('is shown as an offset, with the name of a zone as an example', () => {
    assert.match(stopOf({ 19800: 1 })!, /\+05:30 away .* such as Asia\/Kolkata;/)
    assert.match(stopOf({ '-25200': 1 })!, /-07:00 away .* such as America\/Los_Angeles;/)
    assert.match(stopOf({ '-34200': 1 })!, /-09:30 away .* such as Europe\/Berlin;/)
  })
})
