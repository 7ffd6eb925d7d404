import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JobStopped } from '../job/job-paused.ts'
import { checkZone, findWrongZone, findZoneShift, revealsZone } from './zone-shift.ts'

describe('a shift of the zone', () => {
  it('is found only if most records have the same shift', () => {
    assert.equal(findZoneShift({}), null)
    assert.equal(findZoneShift({ 'zone_shift:0': 100 }), null)
    assert.equal(findZoneShift({ 'zone_shift:0': 50, 'zone_shift:3600': 50 }), null)
    assert.equal(findZoneShift({ 'zone_shift:7200': 45, 'zone_shift:-3600': 45, 'zone_shift:0': 10 }), null)
    assert.equal(findZoneShift({ 'zone_shift:0': 49, 'zone_shift:3600': 51 })?.share, 0.51)
  })

  it('is found in a zone with clock changes from both of its offsets', () => {
    const shift = findZoneShift({ 'zone_shift:7200': 48, 'zone_shift:3600': 42, 'zone_shift:0': 10 })
    assert.deepEqual([shift?.text, shift?.share], ['+02:00', 0.9])
  })

  it('is not found from late records or wrong clocks, whose offsets no zone has', () => {
    for (const seconds of [-900, 900, -1_800, 17_100, -46_800, 52_200, -864_000]) {
      const counts = { [`zone_shift:${seconds}`]: 100 }
      assert.deepEqual([findZoneShift(counts), findWrongZone(counts, 100), revealsZone(counts)], [null, null, false])
      assert.equal(findZoneShift({ ...counts, 'zone_shift:7200': 1 })?.text, '+02:00')
    }
    for (const seconds of [-43_200, -12_600, 20_700, 45_900, 50_400])
      assert.equal(findZoneShift({ [`zone_shift:${seconds}`]: 1 })?.seconds, seconds)
  })

  it('stops a job if hardly any record fits the given zone, and names the offset and zones that fit', () => {
    const stopWith = (counts: Record<string, number>, differing: number, zone: string | null) =>
      checkZone(
        { zoneShift: findZoneShift(counts), wrongZone: findWrongZone(counts, differing), zoneUnproved: 0 },
        zone,
      )
    const stopped = (said: RegExp) => (error: Error) => error instanceof JobStopped && said.test(error.message)
    const inNewYork = { 'zone_shift:-14400': 60, 'zone_shift:-18000': 40 }
    assert.throws(
      () => stopWith(inNewYork, 100, 'Europe/Berlin'),
      stopped(/zone Europe\/Berlin says: the times are -04:00 away .* such as America\/New_York or America\/Halifax;/),
    )
    assert.throws(
      () => stopWith({ 'zone_shift:0': 20, 'zone_shift:900': 9 }, 29, 'Europe/Berlin'),
      stopped(/the times are \+00:00 away .* such as UTC or Europe\/London;/),
    )
    assert.throws(() => stopWith(inNewYork, 0, null), stopped(/wall-clock times, not UTC/))
    assert.throws(() => stopWith(inNewYork, 96, 'Europe/Berlin'), stopped(/-04:00 away/))
    // Some were received late; enough agree; too few have a time of receipt; no shift has a majority.
    stopWith(inNewYork, 60, 'America/New_York')
    stopWith(inNewYork, 95, 'Europe/Berlin')
    stopWith({ 'zone_shift:7200': 19 }, 19, 'UTC')
    stopWith({ 'zone_shift:7200': 19, 'zone_shift:-900': 5 }, 24, 'UTC')
    stopWith({ 'zone_shift:7200': 15, 'zone_shift:-7200': 15 }, 30, 'Europe/Moscow')
  })

  it('is shown as an offset with a zone that has it', () => {
    const shift = (seconds: number) => {
      const { text, example } = findZoneShift({ [`zone_shift:${seconds}`]: 1 })!
      return [text, example]
    }
    assert.deepEqual(shift(19_800), ['+05:30', 'Asia/Kolkata'])
    assert.deepEqual(shift(-25_200), ['-07:00', 'America/Los_Angeles'])
    assert.deepEqual(shift(-34_200), ['-09:30', 'Europe/Berlin'])
  })
})
