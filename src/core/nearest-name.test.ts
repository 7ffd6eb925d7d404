import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nearestName, nearMiss, shortenedName } from './nearest-name.ts'

describe('nearMiss', () => {
  const names = ['key', 'name', 'filters', 'active', 'tags', 'distinct_id', 'rollout_percentage']

  it('finds the name that a slip leads to: a letter added, missing, replaced, swapped or in another case', () => {
    for (const [name, meant] of [
      ['filter', 'filters'],
      ['fliters', 'filters'],
      ['fillterz', 'filters'],
      ['FILTERS', 'filters'],
      ['nmae', 'name'],
      ['kye', 'key'],
      ['tag', 'tags'],
      ['distinct', 'distinct_id'],
      ['distinctId', 'distinct_id'],
      ['rollout-percentage', 'rollout_percentage'],
    ] as const)
      assert.equal(nearMiss(name, names), meant, name)
  })

  it('ignores names that are further away than a slip, however long they are', () => {
    for (const name of ['foo', 'id', '', 'features', 'archived', 'status', 'rollout_conditions', 'x'.repeat(1_000_000)])
      assert.equal(nearMiss(name, names), null, name.slice(0, 20))
  })

  it('takes the nearest name, the first of equals', () => {
    assert.equal(nearMiss('tagz', ['tagsy', 'tagy', 'tags']), 'tagy')
  })
})

describe('shortenedName', () => {
  const names = ['geoip_enabled', 'drop_events_older_than_seconds', 'linked_flag_id', 'linked_flag']

  it('finds the name that the text abbreviates by leaving out words, the shortest of several', () => {
    assert.equal(shortenedName('geoip', names), 'geoip_enabled')
    assert.equal(shortenedName('drop_events_older_than', names), 'drop_events_older_than_seconds')
    assert.equal(shortenedName('drop_older_seconds', names), 'drop_events_older_than_seconds')
    assert.equal(shortenedName('Linked', names), 'linked_flag')
  })

  it('finds none for parts of words, other words, another order or another start', () => {
    for (const name of [
      'geo',
      'geoip_on',
      'drop_older_events',
      'events',
      '',
      'enabled',
      `geoip${'_'.repeat(1_000_000)}`,
    ])
      assert.equal(shortenedName(name, names), null, name.slice(0, 20))
  })
})

describe('nearestName', () => {
  it('always finds one when there are any names', () => {
    assert.equal(nearestName('foo', ['port', 'host_address']), 'port')
    assert.equal(nearestName('foo', []), null)
  })
})
