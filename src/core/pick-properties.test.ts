import assert from 'node:assert/strict'
import { it } from 'node:test'
import { getOwnValue, type JsonObject, parseJson } from './json.ts'
import { pickProperties } from './pick-properties.ts'

const odd: JsonObject = {
  plan: 'pro',
  'a"b\\': 'c"d\\',
  '': [],
  list: [1, '},{"', ['[', { deep: '\\"' }], {}],
  object: { plan: 'inner', ']': '}' },
  'nul\0': '\ud800\0',
  gone: null,
  yes: true,
}

it('each picked property equals the one from parsing the whole text', () => {
  const text = JSON.stringify(odd)
  for (const key of Object.keys(odd)) assert.deepEqual(pickProperties(text, new Set([key])), { [key]: odd[key] })
  assert.deepEqual(pickProperties(text, new Set(Object.keys(odd))), odd)
  assert.deepEqual(pickProperties(text, new Set(['inner', 'deep'])), {})
  assert.deepEqual(pickProperties('{}', new Set(['plan'])), {})
})

it('picked properties keep number literals, and an own key __proto__ is read like any other', () => {
  const text = '{"v":1.0,"id":12345678901234567890,"__proto__":{"polluted":1}}'
  const picked = pickProperties(text, new Set(['v', 'id', '__proto__']))
  assert.equal(JSON.stringify(picked), text)
  assert.deepEqual(getOwnValue(picked, '__proto__'), { polluted: 1 })
  assert.deepEqual(pickProperties(text, new Set(['v'])), parseJson('{"v":1.0}'))
})

it('text that is not an object is refused', () => {
  const names = new Set(['a'])
  for (const text of ['', '[1]', '{"a":1', '{"a"', '{"a":"x}', '{a:1}', '{"a":1}}', '{"b":1}x', '{"a":}'])
    assert.throws(() => pickProperties(text, names), SyntaxError, text)
})
