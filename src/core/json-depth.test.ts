import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nestsDeeperThan } from './json-depth.ts'

test('counts lists and objects, not what stands in strings', () => {
  assert.equal(nestsDeeperThan('[[{}]]', 3), false)
  assert.equal(nestsDeeperThan('[[{}]]', 2), true)
  assert.equal(nestsDeeperThan('["[[[[", "\\"[[[["]', 1), false)
})

test('brackets beside each other do not add up', () => {
  assert.equal(nestsDeeperThan('[[],[],[],{}]', 2), false)
})
