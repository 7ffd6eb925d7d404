import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findAbbreviatedName, findIntendedName, findNearestName } from './nearest-name.ts'

describe('findIntendedName', () => {
  const names = ['key', 'name', 'filters', 'active', 'tags', 'distinct_id', 'rollout_percentage']

  it('finds the name that was misspelt: with a letter added, missing, replaced, swapped or in another case', () => {
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
      assert.equal(findIntendedName(name, names), meant, name)
  })

  it('ignores names that differ by more than a typing error, however long they are', () => {
    for (const name of ['foo', 'id', '', 'features', 'archived', 'status', 'rollout_conditions', 'x'.repeat(1_000_000)])
      assert.equal(findIntendedName(name, names), null, name.slice(0, 20))
  })

  it('chooses the nearest name, and the first of equally near names', () => {
    assert.equal(findIntendedName('tagz', ['tagsy', 'tagy', 'tags']), 'tagy')
  })
})

describe('findAbbreviatedName', () => {
  const names = ['geoip_enabled', 'drop_events_older_than_seconds', 'linked_flag_id', 'linked_flag']

  it('finds the shortest name that the text abbreviates by leaving out words', () => {
    assert.equal(findAbbreviatedName('geoip', names), 'geoip_enabled')
    assert.equal(findAbbreviatedName('drop_events_older_than', names), 'drop_events_older_than_seconds')
    assert.equal(findAbbreviatedName('drop_older_seconds', names), 'drop_events_older_than_seconds')
    assert.equal(findAbbreviatedName('Linked', names), 'linked_flag')
  })

  it('finds no name for parts of words, other words, another order or another start', () => {
    for (const name of [
      'geo',
      'geoip_on',
      'drop_older_events',
      'events',
      '',
      'enabled',
      `geoip${'_'.repeat(1_000_000)}`,
    ])
      assert.equal(findAbbreviatedName(name, names), null, name.slice(0, 20))
  })
})

describe('findNearestName', () => {
  it('always finds a name if there is at least one to choose from', () => {
    assert.equal(findNearestName('foo', ['port', 'host_address']), 'port')
    assert.equal(findNearestName('foo', []), null)
  })
})
