import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isLinear } from '../../tests/support/cpu-time.ts'
import { seededRandom } from '../../tests/support/seeded-random.ts'
import { misreadFromNowOn, spelledJson } from '../../tests/support/spelled-json.ts'
import {
  isDeeperThan,
  isRawNumber,
  type JsonValue,
  parseJson,
  parseJsonWithDoubles,
  toComparableText,
  toPlainNumbers,
} from './json.ts'
import { isNestedDeeperThan } from './json-text.ts'

const digits = (min: number, max: number) =>
  fc.array(fc.constantFrom(...'0123456789'), { minLength: min, maxLength: max }).map(list => list.join(''))
const literal = fc
  .tuple(
    fc.constantFrom('', '-'),
    digits(1, 19).map(text => text.replace(/^0+(?=\d)/, '')),
    fc.oneof(
      fc.constant(''),
      digits(1, 18).map(text => `.${text}`),
    ),
    fc.oneof({ weight: 4, arbitrary: fc.constant('') }, fc.constantFrom('e5', 'E-7', 'e+22')),
  )
  .map(parts => parts.join(''))

describe('parseJson', () => {
  it('keeps every number literal, wherever it is', () => {
    const places = ['@', '{"a":@}', '[@]', '[1,@]', '{"a" : @ , "b":"c"}', '{"a":[ @\n]}', ' @ ']
    fc.assert(
      fc.property(literal, fc.constantFrom(...places), (number, place) => {
        const text = place.replace('@', number)
        assert.equal(JSON.stringify(parseJson(text)), text.replace(/\s/g, ''))
      }),
      { numRuns: 2_000 },
    )
  })

  it('reads every other value as JSON.parse does, including the order and repeats of keys', () => {
    const texts = [
      '{"b":1.0,"a":{"b":[],"__proto__":{"x":[{}]},"constructor":null},"2":"two","1":true,"b":false}',
      '[1.0,"\\"","\\\\","\\\\\\"","a long text without escapes","a long one with \\n escapes, \\ud83d and \\u0000","]}",",:",""]',
      ' { "a" : [ 1.0 , { } , [ ] , -1 , 0 , null , true , false ] , "long key of many characters" : { "k\\u0065y" : 1.5 } } ',
    ]
    for (const text of texts) {
      const kept = parseJson(text)
      assert.deepEqual(withDoubles(kept), JSON.parse(text))
      assert.equal(JSON.stringify(withDoubles(kept)), JSON.stringify(JSON.parse(text)))
    }
  })

  it('decodes the escapes of any text, whatever keys were read before', () => {
    const key = fc.string({ unit: fc.constantFrom(...'\\"u06n/a\n\0é中\ud83d1'), maxLength: 3 })
    const scalar = fc.constantFrom(0, true, null, '\\', '"', 'é', [])
    const { object } = fc.letrec<{ object: object; value: unknown }>(tie => ({
      object: fc.dictionary(fc.oneof(key, fc.constantFrom('a', 'b', '__proto__')), tie('value'), { maxKeys: 3 }),
      value: fc.oneof({ depthSize: 'small' }, scalar, tie('object')),
    }))
    fc.assert(
      fc.property(fc.array(object, { maxLength: 4 }), fc.integer(), (list, seed) => {
        const text = spelledJson(list, seededRandom(seed))
        const expected = JSON.stringify(list)
        assert.equal(JSON.stringify(parseJsonWithDoubles(text)), expected)
        assert.equal(JSON.stringify(toPlainNumbers(parseJson(text))), expected)
        assert.equal(JSON.stringify(parseJson(`[1.0,${text}]`)), `[1.0,${expected}]`)
      }),
      { numRuns: 1_000 },
    )
  })

  it('decodes the escapes in keys, whatever keys other requests sent before', () => {
    const cases = [
      ['{"first 1":"pro","pr\\u00e9nom":"Ada"}', 'pr\\u00e9nom', 'pr\u00e9nom'],
      ['{"first 2":"\\u00e9","\\"" : 1}', '\\"', '"'],
      ['{"first 3":1.0,"x\\ny":1}', 'x\\ny', 'x\ny'],
      ['{"first 4":1,"\\u005f_proto__":1}', '\\u005f_proto__', '__proto__'],
      ['{"2":1,"first 5":1,"\\u0031a":1}', '\\u0031a', '1a'],
    ] as const
    const others = cases.map(([text, spelled]) => misreadFromNowOn(text, spelled))
    for (const [text, , key] of cases)
      for (const value of [parseJson(text), parseJsonWithDoubles(text)])
        assert.equal(Object.keys(value as object).at(-1), key)
    assert.equal(others.length, cases.length)
  })

  it('reads a text that is nested more deeply than the stack allows', () => {
    const depth = 50_000
    const nested = parseJson(`${'['.repeat(depth)}{"\\u0061":1.0}${']'.repeat(depth)}`)
    let inner = nested
    for (let level = 0; level < depth; level++) inner = (inner as JsonValue[])[0]!
    assert.equal(JSON.stringify(inner), '{"a":1.0}')
  })

  it('refuses invalid JSON with the message of JSON.parse, whatever literals it contains', () => {
    for (const text of [
      '',
      '[1.0',
      '[1.0.0]',
      '[01.0]',
      '{"a":1.0,}',
      '[1.0] x',
      '{a:1.0}',
      '[1e]',
      '"1.0',
      '[1.0,"\n"]',
    ]) {
      const message = messageOf(() => JSON.parse(text))
      assert.notEqual(message, null)
      assert.equal(
        messageOf(() => parseJson(text)),
        message,
      )
    }
  })

  it('passes no reviver to JSON.parse, since that would cost a microsecond or two per value', t => {
    const text = `[${'0,'.repeat(32_000)}{},[],"",1.0]`
    const parses = t.mock.method(JSON, 'parse').mock
    const literals = t.mock.method(JSON as unknown as { rawJSON(text: string): unknown }, 'rawJSON').mock
    parseJson(text)
    assert.deepEqual(
      parses.calls.map(call => call.arguments),
      [[text]],
    )
    assert.equal(literals.callCount(), 1)
  })

  it('returns a number that a double reproduces as an ordinary number', () => {
    const value = parseJson('{"time":1700000000.123,"price":19.99,"count":3,"agent":"Gecko rv:120.0) 5e3"}')
    for (const key of ['time', 'price', 'count'])
      assert.equal(typeof (value as { [key: string]: JsonValue })[key], 'number')
    assert.ok(isRawNumber((parseJson('{"v":1.0}') as { v: JsonValue }).v))
  })

  it('takes linear time even for text designed to be slow', () => {
    const texts = [
      (times: number) => `["${',      '.repeat(50 * times)}", ${'1'.repeat(300 * times)}]`,
      (times: number) => `["${':1111.1111'.repeat(50 * times)}"]`,
      (times: number) => `["${`:${'1'.repeat(300 * times)}`}"]`,
    ]
    for (const textOf of texts) {
      const parse = (times: number) => {
        const text = textOf(times)
        return () => void parseJson(text)
      }
      assert.ok(isLinear(parse), textOf(1).slice(0, 40))
    }
  })
})

/** Replaces literals by the numbers that they represent. */
function withDoubles(value: JsonValue): unknown {
  return JSON.parse(JSON.stringify(value))
}

function messageOf(work: () => unknown): string | null {
  try {
    work()
    return null
  } catch (error) {
    assert.ok(error instanceof SyntaxError)
    return error.message
  }
}

describe('toComparableText', () => {
  it('writes 64-bit integer literals as digits, and longer ones as doubles without converting them to integers', t => {
    const integers = t.mock.method(globalThis, 'BigInt').mock
    for (const digits of ['18446744073709551615', '-9223372036854775808', '12345678901234567890'])
      assert.equal(toComparableText(parseJson(digits)), digits)
    assert.equal(integers.callCount(), 3)
    assert.equal(toComparableText(parseJson('18446744073709551616')), '1.8446744073709552e+19')
    assert.equal(toComparableText(parseJson('-9223372036854775809')), '-9.223372036854776e+18')
    integers.resetCalls()
    const long = '9'.repeat(2_000_000)
    assert.equal(toComparableText(parseJson(long)), long)
    assert.equal(integers.callCount(), 0, 'making one of two million digits takes a second')
  })

  it('keeps a literal outside the range of doubles as it was written', () => {
    for (const literal of ['1e400', '-1E+400', `1${'0'.repeat(309)}`, '1.5e309'])
      assert.equal(toComparableText(parseJson(`[${literal}]`)), `[${literal}]`)
    assert.equal(toComparableText(parseJson('1e308')), '1e+308')
    assert.equal(toComparableText(parseJson('1e-400')), '0.0')
  })
})

it('a value is nested too deeply exactly if its text is, even if it is too deep for recursion', () => {
  for (const text of ['[[{}]]', '{"a":[{"b":1}],"c":[]}', '[[],{"a":1.0,"b":null}]', '1', '[-0]', '{"__proto__":[[]]}'])
    for (const depthMax of [0, 1, 2, 3])
      assert.equal(isDeeperThan(parseJson(text), depthMax), isNestedDeeperThan(text, depthMax), `${text} ${depthMax}`)
  let deep: JsonValue = 1
  for (let depth = 0; depth < 100_000; depth++) deep = depth % 2 === 0 ? [deep] : { a: deep }
  assert.equal(isDeeperThan([1, deep], 128), true)
})
