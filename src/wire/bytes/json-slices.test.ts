import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isLinear } from '../../../tests/support/cpu-time.ts'
import { hasLoneSurrogateEscape } from './json-escapes.ts'
import { slice, sliceItems, slicesPerItem } from './json-slices.ts'
import { nestingDepthMax } from './json-walk.ts'

const parts = ['properties', '$set', '$set_once', 'distinct_id', 'offset'] as const
const partSlices = [slice.properties, slice.set, slice.setOnce, slice.distinctId, slice.offset]

function slicesOf(json: string, listKey: string | null, itemCount: number): (string | undefined)[][] {
  const bytes = Buffer.from(json)
  const slices = sliceItems(bytes, listKey, itemCount)
  assert.ok(slices !== null)
  return Array.from({ length: itemCount }, (_, item) =>
    [slice.item, ...partSlices].map(part => {
      const start = slices[item * slicesPerItem + part]!
      const end = slices[item * slicesPerItem + part + 1]!
      return end === 0 ? undefined : bytes.toString('utf8', start, end)
    }),
  )
}

/** Writes JSON as clients may: with blanks anywhere and any character escaped. */
function spell(value: unknown, random: () => number): string {
  const blanks = () => ['', '', '', ' ', '\n', '\t', ' \r\n '][Math.floor(random() * 7)]!
  const text = (raw: string) =>
    `"${[
      ...JSON.stringify(raw)
        .slice(1, -1)
        .matchAll(/\\u....|\\.|[^\\]/gu),
    ]
      .map(([character]) =>
        character.length === 1 && random() < 0.1
          ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
          : character,
      )
      .join('')}"`
  const write = (inner: unknown): string => {
    if (typeof inner === 'string') return text(inner)
    if (Array.isArray(inner)) return `[${blanks()}${inner.map(write).join(`${blanks()},${blanks()}`)}${blanks()}]`
    if (typeof inner === 'object' && inner !== null) {
      const members = Object.entries(inner).map(
        ([key, member]) => `${text(key)}${blanks()}:${blanks()}${write(member)}`,
      )
      return `{${blanks()}${members.join(`${blanks()},${blanks()}`)}${blanks()}}`
    }
    return JSON.stringify(inner)
  }
  return `${blanks()}${write(value)}${blanks()}`
}

const anyItem = fc.dictionary(
  fc.oneof(fc.constantFrom(...parts, 'event', '$distinct', 'prop"erties', '__proto__', 'constructor', ''), fc.string()),
  fc.jsonValue({ maxDepth: 4 }),
  { maxKeys: 8 },
)
const anySeed = fc.integer()

function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

function assertSlices(json: string, listKey: string | null, items: readonly Record<string, unknown>[]): void {
  slicesOf(json, listKey, items.length).forEach(([whole, ...found], index) => {
    assert.deepEqual(JSON.parse(whole!), items[index])
    found.forEach((text, part) => {
      const name = parts[part]!
      if (Object.hasOwn(items[index]!, name)) assert.deepEqual(JSON.parse(text!), items[index]![name])
      else assert.equal(text, undefined)
    })
  })
}

describe('sliceItems', () => {
  it('finds the parts of any item, in a list, in a batch and alone', () => {
    fc.assert(
      fc.property(fc.array(anyItem, { maxLength: 4 }), anyItem, anySeed, (list, single, seed) => {
        const random = seeded(seed)
        const parsed = (json: string) => JSON.parse(json)
        const listJson = spell(list, random)
        assertSlices(listJson, null, parsed(listJson))
        const batchJson = spell({ api_key: 'k', before: [1, { batch: [2] }], batch: list, sent_at: null }, random)
        assertSlices(batchJson, 'batch', parsed(batchJson).batch)
        const singleJson = spell(single, random)
        assertSlices(singleJson, null, [parsed(singleJson)])
      }),
      { numRuns: 1_000 },
    )
  })
  it('keeps literals and spelling', () => {
    const json = '{"event":"e","properties":{ "a" : 1.0, "b":1e2,"c":12345678901234567890, "a":2 },"$set":{"x":-0}}'
    const [[, properties, set]] = slicesOf(json, null, 1) as [(string | undefined)[]]
    assert.equal(properties, '{ "a" : 1.0, "b":1e2,"c":12345678901234567890, "a":2 }')
    assert.equal(set, '{"x":-0}')
  })
  it('takes the last of repeated keys, as JSON.parse does', () => {
    const json = '{"batch":[{"properties":{"a":1}},{}],"batch":[{"properties":1,"prop\\u0065rties":{"a":"é\\\\\\""}}]}'
    assert.equal(slicesOf(json, 'batch', 1)[0]![1], '{"a":"é\\\\\\""}')
  })
  it('takes time in proportion to the text, however often the key of the items is repeated', () => {
    const item = '{"event":"e"}'
    const work = (times: number) => {
      const count = 300 * times
      const json = Buffer.from(`{${'"batch":[],'.repeat(count)}"batch":[${Array(count).fill(item).join()}]}`)
      return () => assert.notEqual(sliceItems(json, 'batch', count), null)
    }
    assert.ok(isLinear(work))
  })
  it('leaves nothing of a list that a repeated key replaces', () => {
    const sent = '{"offset":1,"properties":{"a":1}}'
    const json = `{"batch":[${sent},1,${sent}],"batch":[],"batch":[{"distinct_id":"a"},{},{"offset":2}]}`
    assert.deepEqual(
      slicesOf(json, 'batch', 3).map(([, ...found]) => found.filter(text => text !== undefined)),
      [['"a"'], [], ['2']],
    )
  })
  it('refuses values nested deeper than the bound, however deep', () => {
    const nested = (depth: number) => `[{"properties":{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}}]`
    assert.notEqual(sliceItems(Buffer.from(nested(nestingDepthMax)), null, 1), null)
    assert.equal(sliceItems(Buffer.from(nested(nestingDepthMax + 1)), null, 1), null)
    assert.equal(sliceItems(Buffer.from(nested(1_000_000)), null, 1), null)
  })
})

describe('hasLoneSurrogateEscape', () => {
  it('agrees with what the parsed text holds', () => {
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
