import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nearestName, nearMiss } from './nearest-name.ts'

describe('nearMiss', () => {
  const names = ['key', 'name', 'filters', 'active', 'tags', 'distinct_id', 'rollout_percentage']

  it('finds what a slip leads to: a letter more, less, other, swapped or of another case', () => {
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

  it('leaves names alone that are further away than a slip, however long they are', () => {
    for (const name of ['foo', 'id', '', 'features', 'archived', 'status', 'rollout_conditions', 'x'.repeat(1_000_000)])
      assert.equal(nearMiss(name, names), null, name.slice(0, 20))
  })

  it('takes the nearest, the first of equals', () => {
    assert.equal(nearMiss('tagz', ['tagsy', 'tagy', 'tags']), 'tagy')
  })
})

describe('nearestName', () => {
  it('always finds one when there is any', () => {
    assert.equal(nearestName('foo', ['port', 'host_address']), 'port')
    assert.equal(nearestName('foo', []), null)
  })
})
