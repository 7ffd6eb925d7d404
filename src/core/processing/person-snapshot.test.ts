import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { runs } from '../../../tests/support/nightly.ts'
import { aProject } from '../../../tests/support/values.ts'
import { type JsonObject, mergeObjects, parseJson } from '../json.ts'
import { ProjectState } from './chunk-state.ts'
import { buildPersonSnapshotJson } from './person-snapshot.ts'

it('the event’s $set overrides the person’s values, whether the text is spliced or rewritten', () => {
  const key = fc.constantFrom('$current_url', '"$current_url":', '__proto__', 'a', 'aa', 'b{', '\\', 'c')
  const value = fc.oneof(
    fc.constantFrom('"$current_url":1', '{', '}', '1', '12', '1.0', '""', '[]', '{"a":1}', '"a\\":1"', 'null'),
    fc.string().map(text => JSON.stringify(text)),
  )
  const bag = fc.dictionary(key, value, { maxKeys: 7 }).map(entries => {
    const texts = Object.entries(entries).map(
      ([name, text]) => `${JSON.stringify(name)}:${isJson(text) ? text : JSON.stringify(text)}`,
    )
    return parseJson(`{${texts.join(',')}}`) as JsonObject
  })
  fc.assert(
    fc.property(bag, fc.array(bag, { maxLength: 3 }), (properties, sets) => {
      const person = new ProjectState(aProject()).createPerson('u', { properties, marks: {} }, 0, false)
      for (const set of sets)
        assert.equal(buildPersonSnapshotJson(person, set), JSON.stringify(mergeObjects(properties, set)))
      assert.equal(buildPersonSnapshotJson(person, null), JSON.stringify(properties))
    }),
    { numRuns: runs(400, 3_000) },
  )
})

it('a key is not confused with the end of a longer key', () => {
  const properties = { 'b"a': 1, a: 1 }
  const person = new ProjectState(aProject()).createPerson('u', { properties, marks: {} }, 0, false)
  assert.equal(buildPersonSnapshotJson(person, { a: 2 }), JSON.stringify({ 'b"a': 1, a: 2 }))
})

it('a text is rewritten if its first value is not spelt as JSON.stringify would spell it', () => {
  const properties = { a: 1, b: { c: 0, a: 1 } }
  const person = new ProjectState(aProject()).createPerson('u', { properties, marks: {} }, 0, false)
  person.propertiesJson = '{"a":1.0,"b":{"c":0,"a":1}}'
  assert.equal(buildPersonSnapshotJson(person, { a: 2 }), '{"a":2,"b":{"c":0,"a":1}}')
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
