import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isLinear } from '../../tests/support/cpu-time.ts'
import { parseJsonWithDoubles } from './json.ts'
import {
  editMembers,
  findMembersNamed,
  findRepeatedKey,
  hasLoneSurrogateEscape,
  hasMoreFieldsThan,
  hasMoreValuesThan,
  isNestedDeeperThan,
  listMemberTexts,
  MemberNames,
  removeMembers,
  truncateToFirstMembers,
} from './json-text.ts'

it('a member of an object is found by its name, however the name is escaped, and only at the top level', () => {
  for (const [text, expected] of [
    ['{"b":1,"a$":2}', true],
    [' { "b" : [ "a$" ] , "a$" : 1 } ', true],
    ['{"b\\"":"}","\\u0061\\u0024":null}', true],
    ['{}', false],
    ['{"a":1,"a$b":2,"a\\n":3,"\\\\u0061$":4,"a\\u0024\\u0024":5,"a\\"24xy":6}', false],
    ['{"b":{"a$":1},"c":"\\"a$\\":1"}', false],
  ] as const)
    assert.equal(findMembersNamed(text, new MemberNames(['a$'])).length > 0, expected, text)
})

it('members are edited separately, each by the position of its value', () => {
  const text = ' { "a" : 1.0 , "b":{"a":2} ,"c":"x", "a":3 } '
  const seen: string[] = []
  const members = findMembersNamed(text, new MemberNames(['a', 'b', 'c']))
  const edited = editMembers(text, members, ({ name, valueStart, end }) => {
    seen.push(`${name}=${text.slice(valueStart, end).trim()}`)
    if (name === 'c') return null
    return name === 'a' ? `[${seen.length}]` : undefined
  })
  assert.deepEqual(seen, ['a=1.0', 'b={"a":2}', 'c="x"', 'a=3'])
  assert.equal(edited, ' { "a" : [1], "b":{"a":2} , "a":[4]} ')
})

describe('the text of an object from which members were removed', () => {
  it('keeps the remaining members as they were written', () => {
    const names = new Set(['$lib', 'a'])
    for (const [text, expected] of [
      ['{}', '{}'],
      [' { } ', '{}'],
      ['{"$lib":1}', '{}'],
      ['{"$lib":1,"b":1.0,"$lib":2}', '{"b":1.0}'],
      [
        ' { "b" : 1e2 ,\n"c":[ 1 , {"a":2} ] , "a" : {"b":"}"} , "d" : "\\"," } ',
        ' { "b" : 1e2 ,\n"c":[ 1 , {"a":2} ] , "d" : "\\"," } ',
      ],
      ['{ "a" : 1 ,"b":2 , "a":3, "$lib":4 }', '{ "b":2 }'],
      ['{ "a" : 1 , "a":2 }', '{}'],
      ['{ "b":1 , "a":2}', '{ "b":1 }'],
      ['{"\\u0024lib":1,"b\\\\":2,"$li\\u0062":"\\\\"}', '{"b\\\\":2}'],
      ['{"b":1,"c":2,"a":3,"d":4,"e":5}', '{"b":1,"c":2,"d":4,"e":5}'],
    ] as const)
      assert.equal(removeMembers(text, names), expected)
  })

  it('parses to the object without those members, whatever it contains', () => {
    const key = fc.oneof(fc.constantFrom('a', 'b', '"', '\\', '\n', '{', '__proto__'), fc.string())
    const value = fc.json({ maxDepth: 3 })
    fc.assert(
      fc.property(
        fc.dictionary(
          key,
          value.map(text => parseJsonWithDoubles(text)),
          { maxKeys: 6 },
        ),
        fc.array(key, { maxLength: 3 }),
        fc.constantFrom('', ' ', '\n\t'),
        (object, names, blank) => {
          const expected = parseJsonWithDoubles(JSON.stringify(object)) as Record<string, unknown>
          for (const name of names) delete expected[name]
          const left = removeMembers(JSON.stringify(object, null, blank), new Set(names))
          assert.deepEqual(parseJsonWithDoubles(left), expected)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('is made in time proportional to the length of the text', () => {
    for (const part of ['"a":1,"b":2', '"b":"\\\\\\\\","a":1', '"b":[[[[]]]],"a":{}']) {
      const parse = (times: number) => {
        const text = `{${Array(100 * times).fill(part)}}`
        return () => void removeMembers(text, new Set(['a']))
      }
      assert.ok(isLinear(parse), part)
    }
  })
})

describe('the members of an object', () => {
  it('are returned as they were written, each once', () => {
    const members = [
      '"a":1.0',
      '"b":{"x":[1,"}"],"y":"\\\\"}',
      '"c\\"":",\\"d\\":1"',
      '"":null',
      '"e":123456789012345678901',
    ]
    for (const some of [members, members.slice(1, 2), []])
      assert.deepEqual(listMemberTexts(`{${some.join(',')}}`), some)
  })
})

describe('the repeated key', () => {
  for (const [text, key] of [
    ['{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}', null],
    ['{"a":"a","b":["a","a"],"c":"}{"}', null],
    ['{"a":1,"b":{"c":1, "d":[{"x":1}], "c" : 2}}', 'c'],
    ['[{"a":1},{"a\\u0062":1,"ab":2}]', 'ab'],
    ['{"__proto__":1,"__proto__":2}', '__proto__'],
    ['{"":1,"":2}', ''],
    ['"a"', null],
  ] as const)
    it(`of ${text} is ${key === null ? 'none' : `"${key}"`}`, () => assert.equal(findRepeatedKey(text), key))
})

describe('the first members of an object', () => {
  it('are valid JSON wherever the text is truncated, and a longer text never gives fewer members', () => {
    const json = '{"a\\"":"x\\\\","b,":[1,{"c":"]"}],"d":{"e":"}"} , "f":null}'
    const whole = Object.keys(JSON.parse(json))
    let before = 0
    for (let length = 0; length <= json.length; length++) {
      const keys = Object.keys(JSON.parse(truncateToFirstMembers(json, length)))
      assert.deepEqual(keys, whole.slice(0, keys.length))
      assert.ok(keys.length >= before)
      before = keys.length
    }
    assert.equal(truncateToFirstMembers(json, json.length), json)
    assert.equal(before, 4)
  })
})

it('brackets of lists and objects are counted, but not brackets inside strings', () => {
  assert.equal(isNestedDeeperThan('[[{}]]', 3), false)
  assert.equal(isNestedDeeperThan('[[{}]]', 2), true)
  assert.equal(isNestedDeeperThan('["[[[[", "\\"[[[["]', 1), false)
})

it('the depth of adjacent brackets does not add up', () => {
  assert.equal(isNestedDeeperThan('[[],[],[],{}]', 2), false)
})

it('values of lists and objects are counted at any depth, but not text inside strings', () => {
  const counted = (text: string) => [1, 2, 3, 4, 5, 6, 7].find(max => !hasMoreValuesThan(text, max))
  assert.equal(counted('[0,{"a":1,"b":[0,0]}]'), 7)
  assert.equal(counted('["0,0,0,0,[[{{","\\",0,0,0"]'), 3)
  assert.equal(counted('[[],[],{}]'), 6)
  assert.equal(counted(`"${',[{'.repeat(10)}`), 1)
})

it('fields, objects and lists are counted at any depth, but not the values of lists', () => {
  const counted = (text: string) => [0, 1, 2, 3, 4, 5, 6, 7].find(max => !hasMoreFieldsThan(text, max))
  assert.equal(counted('{"a":1,"b":[0,0,0,{"c":2}]}'), 6)
  assert.equal(counted('[":[{",0,0,0,0,0,0,0,0]'), 1)
  assert.equal(counted('[[],[],{}]'), 4)
})

describe('hasLoneSurrogateEscape', () => {
  it('is true exactly if the parsed text contains a lone surrogate', () => {
    const piece = fc.constantFrom(
      '\\ud83d',
      '\\ude00',
      '\\uD83D\\uDE00',
      '\\\\ud83d',
      '\\\\\\ude00',
      '\\n',
      'd800',
      '\\u0041',
      '😀',
      '\\"',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), pieces => {
        const json = `"${pieces.join('')}"`
        assert.equal(hasLoneSurrogateEscape(json), !(JSON.parse(json) as string).isWellFormed())
      }),
      { numRuns: 1_000 },
    )
  })
})
