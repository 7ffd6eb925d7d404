import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson } from './json.ts'
import { diffJson } from './json-diff.ts'

function diff(before: string, after: string) {
  return diffJson(parseJson(before), parseJson(after))
}

test('names the smallest place that differs', () => {
  assert.deepEqual(diff('{"a":{"b":[1,{"c":2}]}}', '{"a":{"b":[1,{"c":3}]}}'), [
    { path: 'a.b.1.c', action: 'changed', before: 2, after: 3 },
  ])
})

test('distinguishes created and deleted from changed to null', () => {
  assert.deepEqual(diff('{"gone":1,"nulled":1}', '{"nulled":null,"new":[2]}'), [
    { path: 'gone', action: 'deleted', before: 1, after: null },
    { path: 'nulled', action: 'changed', before: 1, after: null },
    { path: 'new', action: 'created', before: null, after: [2] },
  ])
})

test('treats different number literals as changes, and does not report equal values', () => {
  assert.equal(diff('[1]', '[1.0]').length, 1)
  assert.deepEqual(diff('{"a":[1.0,"x",{"b":null}]}', '{"a":[1.0,"x",{"b":null}]}'), [])
})

test('walks __proto__ and constructor like any other key', () => {
  assert.deepEqual(
    diff('{"__proto__":{"a":1}}', '{"__proto__":{"a":2},"constructor":3}').map(change => change.path),
    ['__proto__.a', 'constructor'],
  )
})
