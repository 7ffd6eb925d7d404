import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findZoneShift } from './zone-shift.ts'

describe('a shift of the zone', () => {
  it('is found when most records have the same one, and only then', () => {
    assert.equal(findZoneShift({}), null)
    assert.equal(findZoneShift({ 'zone_shift:0': 100 }), null)
    assert.equal(findZoneShift({ 'zone_shift:0': 50, 'zone_shift:3600': 50 }), null)
    assert.equal(findZoneShift({ 'zone_shift:7200': 45, 'zone_shift:-3600': 45, 'zone_shift:0': 10 }), null)
    assert.equal(findZoneShift({ 'zone_shift:0': 49, 'zone_shift:3600': 51 })?.share, 0.51)
  })

  it('is found in a zone whose clocks change, by both of its offsets', () => {
    const shift = findZoneShift({ 'zone_shift:7200': 48, 'zone_shift:3600': 42, 'zone_shift:0': 10 })
    assert.deepEqual([shift?.text, shift?.share], ['+02:00', 0.9])
  })

  it('is told as an offset with a zone that has it', () => {
    const shift = (seconds: number) => {
      const { text, example } = findZoneShift({ [`zone_shift:${seconds}`]: 1 })!
      return [text, example]
    }
    assert.deepEqual(shift(19_800), ['+05:30', 'Asia/Kolkata'])
    assert.deepEqual(shift(-25_200), ['-07:00', 'America/Los_Angeles'])
    assert.deepEqual(shift(-34_200), ['-09:30', 'Europe/Berlin'])
  })
})
