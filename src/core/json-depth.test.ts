import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonValue, parseJson } from './json.ts'
import { holdsMoreFieldsThan, holdsMoreValuesThan, isDeeperThan, nestsDeeperThan } from './json-depth.ts'

test('counts lists and objects, but not brackets inside strings', () => {
  assert.equal(nestsDeeperThan('[[{}]]', 3), false)
  assert.equal(nestsDeeperThan('[[{}]]', 2), true)
  assert.equal(nestsDeeperThan('["[[[[", "\\"[[[["]', 1), false)
})

test('brackets beside each other do not add up', () => {
  assert.equal(nestsDeeperThan('[[],[],[],{}]', 2), false)
})

test('a value nests as deep as its text, also one that no recursion could follow', () => {
  for (const text of ['[[{}]]', '{"a":[{"b":1}],"c":[]}', '[[],{"a":1.0,"b":null}]', '1', '[-0]', '{"__proto__":[[]]}'])
    for (const depthMax of [0, 1, 2, 3])
      assert.equal(isDeeperThan(parseJson(text), depthMax), nestsDeeperThan(text, depthMax), `${text} ${depthMax}`)
  let deep: JsonValue = 1
  for (let depth = 0; depth < 100_000; depth++) deep = depth % 2 === 0 ? [deep] : { a: deep }
  assert.equal(isDeeperThan([1, deep], 128), true)
})

test('counts the values of lists and objects at any depth, but not text inside strings', () => {
  const counted = (text: string) => [1, 2, 3, 4, 5, 6, 7].find(max => !holdsMoreValuesThan(text, max))
  assert.equal(counted('[0,{"a":1,"b":[0,0]}]'), 7)
  assert.equal(counted('["0,0,0,0,[[{{","\\",0,0,0"]'), 3)
  assert.equal(counted('[[],[],{}]'), 6)
  assert.equal(counted(`"${',[{'.repeat(10)}`), 1)
})

test('counts the fields of objects at any depth, the objects and the lists, but not the values of lists', () => {
  const counted = (text: string) => [0, 1, 2, 3, 4, 5, 6, 7].find(max => !holdsMoreFieldsThan(text, max))
  assert.equal(counted('{"a":1,"b":[0,0,0,{"c":2}]}'), 6)
  assert.equal(counted('[":[{",0,0,0,0,0,0,0,0]'), 1)
  assert.equal(counted('[[],[],{}]'), 4)
})
