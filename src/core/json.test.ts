import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isLinear } from '../../tests/support/cpu-time.ts'
import { isRawNumber, type JsonValue, parseJson, textOf } from './json.ts'

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
  it('keeps every number literal, wherever it stands', () => {
    const places = ['@', '{"a":@}', '[@]', '[1,@]', '{"a" : @ , "b":"c"}', '{"a":[ @\n]}', ' @ ']
    fc.assert(
      fc.property(literal, fc.constantFrom(...places), (number, place) => {
        const text = place.replace('@', number)
        assert.equal(JSON.stringify(parseJson(text)), text.replace(/\s/g, ''))
      }),
      { numRuns: 2_000 },
    )
  })

  it('reads every other value as JSON.parse does, order and repeats of keys included', () => {
    const texts = [
      '{"b":1.0,"a":{"b":[],"__proto__":{"x":[{}]},"constructor":null},"2":"two","1":true,"b":false}',
      '[1.0,"\\"","\\\\","\\\\\\"","a long text without escapes","a long one with \\n escapes, \\ud83d and \\u0000","]}",",:",""]',
      ' { "a" : [ 1.0 , { } , [ ] , -1 , 0 , null , true , false ] , "long key of many characters" : { "k\\u0065y" : 1.5 } } ',
    ]
    for (const text of texts) assert.deepEqual(withDoubles(parseJson(text)), JSON.parse(text))
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 4 }).filter(hasNoEscapedBackslash),
        fc.constantFrom('', ' ', '\n\t'),
        (json, blank) => {
          const spaced = JSON.stringify(JSON.parse(json), null, blank)
          const text = `[1.0,${blank}${spaced}${blank}]`
          const value = parseJson(text) as JsonValue[]
          assert.ok(isRawNumber(value[0]))
          assert.deepEqual(withDoubles(value), JSON.parse(text))
          assert.equal(JSON.stringify(withDoubles(value)), JSON.stringify(JSON.parse(text)))
        },
      ),
      { numRuns: 1_000 },
    )
  })

  it('reads keys with escapes as what they say, whatever keys others have sent before', () => {
    const cases = [
      ['{"plan":"pro","pr\\\\u00":1}', '{"plan":"pro","pr\\u00e9nom":"Ada"}', 'pr\u00e9nom'],
      ['{"a":[],"\\\\":1}', '{"a":"\\u00e9","\\"" : 1}', '"'],
      ['{"b":1,"x\\\\n":1}', '{"b":1.0,"x\\ny":1}', 'x\ny'],
    ] as const
    const others = cases.map(([other]) => parseJson(other))
    for (const [, text, key] of cases) assert.equal(Object.keys(parseJson(text) as object)[1], key)
    assert.equal(others.length, cases.length)
  })

  it('refuses what is no JSON in the words of JSON.parse, whatever literals stand in it', () => {
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

  it('hands JSON.parse no function to call for each value, which takes a microsecond or two', t => {
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

  it('leaves numbers that a double gives back as plain numbers', () => {
    const value = parseJson('{"time":1700000000.123,"price":19.99,"count":3,"agent":"Gecko rv:120.0) 5e3"}')
    for (const key of ['time', 'price', 'count'])
      assert.equal(typeof (value as { [key: string]: JsonValue })[key], 'number')
    assert.ok(isRawNumber((parseJson('{"v":1.0}') as { v: JsonValue }).v))
  })

  it('stays linear on text made to be slow', () => {
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

/** Node 26's JSON.parse, which the test compares with, confuses the keys `"` and backslash after objects with both. */
function hasNoEscapedBackslash(json: string): boolean {
  return !json.includes('\\\\')
}

/** Replaces literals by the numbers that they stand for. */
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

describe('textOf', () => {
  it('writes whole literals of 64 bits as digits, and longer ones as doubles, without making integers of those', t => {
    const integers = t.mock.method(globalThis, 'BigInt').mock
    for (const digits of ['18446744073709551615', '-9223372036854775808', '12345678901234567890'])
      assert.equal(textOf(parseJson(digits)), digits)
    assert.equal(integers.callCount(), 3)
    assert.equal(textOf(parseJson('18446744073709551616')), '1.8446744073709552e+19')
    assert.equal(textOf(parseJson('-9223372036854775809')), '-9.223372036854776e+18')
    integers.resetCalls()
    const long = '9'.repeat(2_000_000)
    assert.equal(textOf(parseJson(long)), long)
    assert.equal(integers.callCount(), 0, 'making one of two million digits takes a second')
  })

  it('keeps a literal that is beyond every double as it was written', () => {
    for (const literal of ['1e400', '-1E+400', `1${'0'.repeat(309)}`, '1.5e309'])
      assert.equal(textOf(parseJson(`[${literal}]`)), `[${literal}]`)
    assert.equal(textOf(parseJson('1e308')), '1e+308')
    assert.equal(textOf(parseJson('1e-400')), '0.0')
  })
})
