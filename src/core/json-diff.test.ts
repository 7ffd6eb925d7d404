import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseJson } from './json.ts'
import { diffJson } from './json-diff.ts'

function diff(before: string, after: string) {
  return diffJson(parseJson(before), parseJson(after))
}

test('a difference is reported at the smallest part that differs', () => {
  assert.deepEqual(diff('{"a":{"b":[1,{"c":2}]}}', '{"a":{"b":[1,{"c":3}]}}'), [
    { path: 'a.b.1.c', action: 'changed', before: 2, after: 3 },
  ])
})

test('a created or deleted member is distinguished from one that was changed to null', () => {
  assert.deepEqual(diff('{"gone":1,"nulled":1}', '{"nulled":null,"new":[2]}'), [
    { path: 'gone', action: 'deleted', before: 1, after: null },
    { path: 'nulled', action: 'changed', before: 1, after: null },
    { path: 'new', action: 'created', before: null, after: [2] },
  ])
})

test('a number literal that is written differently is a change, and one that is written the same is not', () => {
  assert.equal(diff('[1]', '[1.0]').length, 1)
  assert.deepEqual(diff('{"a":[1.0,"x",{"b":null}]}', '{"a":[1.0,"x",{"b":null}]}'), [])
})

test('__proto__ and constructor are compared like any other key', () => {
  assert.deepEqual(
    diff('{"__proto__":{"a":1}}', '{"__proto__":{"a":2},"constructor":3}').map(change => change.path),
    ['__proto__.a', 'constructor'],
  )
})

test('a member is listed as a whole if its changes would take more text than its old and new values', () => {
  const list = (value: number) => Array<number>(1_000).fill(value)
  const long = 'k'.repeat(5_000)
  const [before, after] = [
    { kept: 1, deep: { [long]: list(0) }, list: list(0) },
    { kept: 2, deep: { [long]: list(1) }, list: list(1) },
  ]
  assert.deepEqual(diffJson(before, after), [
    { path: 'kept', action: 'changed', before: 1, after: 2 },
    { path: 'deep', action: 'changed', before: before.deep, after: after.deep },
    { path: 'list', action: 'changed', before: before.list, after: after.list },
  ])
  assert.deepEqual(diffJson(before.list, after.list), [
    { path: '', action: 'changed', before: before.list, after: after.list },
  ])
})

test('changes of a large member are listed one by one if they are small', () => {
  const rest = 'x'.repeat(1_000_000)
  const list = (value: number) => Array<number>(1_000).fill(value)
  assert.equal(diffJson({ a: { rest, list: list(0) } }, { a: { rest, list: list(1) } }).length, 1_000)
  const few = { a: Array<number>(100).fill(0) }
  assert.equal(diffJson(few, { a: few.a.map(value => value + 1) }).length, 100)
})
