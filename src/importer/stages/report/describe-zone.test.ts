import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { describeZone, differingZones } from './describe-zone.ts'

const mapping = { source_timezone: 'Europe/Oslo' }

describe('the zone of times without one', () => {
  it('is that of the configuration, else of the mapping, and is said with where it is from', () => {
    assert.equal(describeZone({}), 'none was said')
    assert.equal(describeZone({ source_timezone: 'UTC' }), 'UTC')
    assert.equal(describeZone({ mapping }), 'Europe/Oslo, by the mapping')
    assert.equal(
      describeZone({ source_timezone: 'UTC', mapping }),
      'UTC, which counts instead of Europe/Oslo in the mapping',
    )
  })

  it('is told of beforehand only where the two differ', () => {
    for (const config of [{}, { mapping }, { ...mapping, mapping }, { source_timezone: 'UTC', mapping: {} }])
      assert.equal(differingZones(config), null)
    assert.match(differingZones({ source_timezone: 'UTC', mapping })!, /^Times .* read as UTC, which counts instead/)
  })
})
