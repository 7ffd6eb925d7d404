import assert from 'node:assert/strict'
import { test } from 'node:test'
import { holdsMoreValuesThan, nestsDeeperThan } from './json-depth.ts'

test('counts lists and objects, not what stands in strings', () => {
  assert.equal(nestsDeeperThan('[[{}]]', 3), false)
  assert.equal(nestsDeeperThan('[[{}]]', 2), true)
  assert.equal(nestsDeeperThan('["[[[[", "\\"[[[["]', 1), false)
})

test('brackets beside each other do not add up', () => {
  assert.equal(nestsDeeperThan('[[],[],[],{}]', 2), false)
})

test('values are those of lists and objects at any depth, not what stands in strings', () => {
  const counted = (text: string) => [1, 2, 3, 4, 5, 6, 7].find(max => !holdsMoreValuesThan(text, max))
  assert.equal(counted('[0,{"a":1,"b":[0,0]}]'), 7)
  assert.equal(counted('["0,0,0,0,[[{{","\\",0,0,0"]'), 3)
  assert.equal(counted('[[],[],{}]'), 6)
  assert.equal(counted(`"${',[{'.repeat(10)}`), 1)
})
