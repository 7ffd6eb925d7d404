import assert from 'node:assert/strict'
import { it } from 'node:test'
import { RecentMap } from './recent-map.ts'

it('a cache keeps an entry in constant use while it evicts any number of other entries', () => {
  const recent = new RecentMap<number>(2_000)
  recent.set('used', -1, 2)
  for (let index = 0; index < 1_000; index++) {
    recent.set(String(index), index, 4)
    assert.equal(recent.get('used'), -1)
    assert.equal(recent.get(String(index)), index)
    assert.equal(recent.get(String(index - 50)), undefined)
  }
})

it('a cache does not keep an entry larger than its bound', () => {
  const recent = new RecentMap<string>(1_000)
  recent.set('small', 's', 1)
  recent.set('large', 'l', 1_000)
  assert.deepEqual([recent.get('large'), recent.get('small')], [undefined, 's'])
  recent.set('small', 't', 800)
  assert.equal(recent.get('small'), 't')
  recent.set('small', 'l', 1_000)
  assert.equal(recent.get('small'), undefined)
})
