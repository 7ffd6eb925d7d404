import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeDifferingZones, describeZone } from './describe-zone.ts'

const mapping = { source_timezone: 'Europe/Oslo' }

describe('the zone of times without one', () => {
  it('is taken from the configuration, or else from the mapping, which is then mentioned', () => {
    assert.equal(describeZone({}), 'none given')
    assert.equal(describeZone({ source_timezone: 'UTC' }), 'UTC')
    assert.equal(describeZone({ mapping }), 'Europe/Oslo, by the mapping')
    assert.equal(describeZone({ source_timezone: 'UTC', mapping }), 'UTC, which overrides Europe/Oslo in the mapping')
  })

  it('is announced only if configuration and mapping differ', () => {
    for (const config of [{}, { mapping }, { ...mapping, mapping }, { source_timezone: 'UTC', mapping: {} }])
      assert.equal(describeDifferingZones(config), null)
    assert.match(describeDifferingZones({ source_timezone: 'UTC', mapping })!, /^Times .* read as UTC, which overrides/)
  })
})
