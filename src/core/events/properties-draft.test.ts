import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type JsonObject, parseJson, parseJsonWithDoubles } from '../json.ts'
import { PropertiesDraft } from './properties-draft.ts'

function draftOf(text: string): PropertiesDraft {
  return new PropertiesDraft(text, parseJson(text) as JsonObject)
}

describe('the stored text of properties', () => {
  it('is the client’s own text if nothing is added', () => {
    const text = '{ "b" : 1.0, "a":1e2 , "b":12345678901234567890 }'
    assert.equal(draftOf(text).json(), text)
  })

  it('ends with the added keys, after the client’s own text with its spaces and repeated keys', () => {
    const draft = draftOf('{ "b" : 1.0, "b": 2 } ')
    draft.set('$ip', '203.0.113.7')
    draft.set('$set', { n: 1 })
    assert.equal(draft.json(), '{ "b" : 1.0, "b": 2 ,"$ip":"203.0.113.7","$set":{"n":1}}')
  })

  it('is rewritten, with its number literals, if a key is removed or changed', () => {
    const draft = draftOf('{"a":1.0,"gone":{"x":[1]},"b":12345678901234567890,"__proto__":{"x":1}}')
    draft.remove('gone')
    draft.set('a', 'new')
    draft.set('added', true)
    assert.equal(draft.json(), '{"a":"new","b":12345678901234567890,"__proto__":{"x":1},"added":true}')
  })

  it('can start from an empty object, whatever spaces it contains', () => {
    for (const text of ['{}', ' { } ', '{\n}']) {
      const draft = draftOf(text)
      assert.equal(draft.json(), text)
      draft.set('a', '}')
      assert.equal(draft.json(), '{"a":"}"}')
      draft.remove('a')
      assert.equal(draft.json(), text)
    }
  })

  it('keeps only the selected keys', () => {
    const draft = draftOf('{"a":1,"__proto__":2,"b":3}')
    draft.set('c', 4)
    draft.set('d', 5)
    draft.keepOnly(key => key === 'b' || key === 'c')
    assert.equal(draft.json(), '{"b":3,"c":4}')
  })

  it('is equivalent to an object with the same changes, whatever the keys', () => {
    const key = fc.oneof(fc.constantFrom('a', 'b', '$set', '__proto__', 'constructor'), fc.string())
    const value = fc.jsonValue({ maxDepth: 2 })
    fc.assert(
      fc.property(
        fc.dictionary(key, value, { maxKeys: 5 }),
        fc.array(fc.tuple(key, fc.option(value, { nil: undefined })), { maxLength: 4 }),
        (object, changes) => {
          const expected = new Map(Object.entries(parseJsonWithDoubles(JSON.stringify(object)) as object))
          const draft = draftOf(JSON.stringify(object))
          for (const [name, to] of changes) {
            if (to === undefined) draft.remove(name)
            else draft.set(name, to as never)
            if (to === undefined) expected.delete(name)
            else expected.set(name, parseJsonWithDoubles(JSON.stringify(to)))
          }
          const seen = new Map(Object.entries(parseJsonWithDoubles(draft.json()) as object))
          const byKey = (map: Map<string, unknown>) => [...map].sort(([x], [y]) => (x < y ? -1 : 1))
          assert.deepEqual(byKey(seen), byKey(expected))
        },
      ),
      { numRuns: 500 },
    )
  })
})
