import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseJsonWithDoubles } from '#core/json.ts'
import { isLinear } from '../../../tests/support/cpu-time.ts'
import { runs } from '../../../tests/support/nightly.ts'
import { seededRandom } from '../../../tests/support/seeded-random.ts'
import { spelledJson } from '../../../tests/support/spelled-json.ts'
import { findItemSlices, slice, slicesPerItem } from './json-slices.ts'
import { nestingDepthMax } from './json-walk.ts'

const parts = ['properties', '$set', '$set_once', 'distinct_id', 'offset'] as const
const partSlices = [slice.properties, slice.set, slice.setOnce, slice.distinctId, slice.offset]

function slicesOf(json: string, listKey: 'batch' | null, itemCount: number): (string | undefined)[][] {
  const bytes = Buffer.from(json)
  const slices = findItemSlices(bytes, listKey, itemCount)
  assert.ok(slices !== null)
  return Array.from({ length: itemCount }, (_, item) =>
    [slice.item, ...partSlices].map(part => {
      const start = slices[item * slicesPerItem + part]!
      const end = slices[item * slicesPerItem + part + 1]!
      return end === 0 ? undefined : bytes.toString('utf8', start, end)
    }),
  )
}

const anyItem = fc.dictionary(
  fc.oneof(fc.constantFrom(...parts, 'event', '$distinct', 'prop"erties', '__proto__', 'constructor', ''), fc.string()),
  fc.jsonValue({ maxDepth: 4 }),
  { maxKeys: 8 },
)
const anySeed = fc.integer()

function assertSlices(json: string, listKey: 'batch' | null, items: readonly Record<string, unknown>[]): void {
  slicesOf(json, listKey, items.length).forEach(([whole, ...found], index) => {
    assert.deepEqual(parseJsonWithDoubles(whole!), items[index])
    found.forEach((text, part) => {
      const name = parts[part]!
      if (Object.hasOwn(items[index]!, name)) assert.deepEqual(parseJsonWithDoubles(text!), items[index]![name])
      else assert.equal(text, undefined)
    })
  })
}

describe('findItemSlices', () => {
  it('finds the parts of any item, in a list, in a batch or on its own', () => {
    fc.assert(
      fc.property(fc.array(anyItem, { maxLength: 4 }), anyItem, anySeed, (list, single, seed) => {
        const random = seededRandom(seed)
        const parsed = (json: string) => parseJsonWithDoubles(json) as Record<string, unknown>[]
        const listJson = spelledJson(list, random)
        assertSlices(listJson, null, parsed(listJson))
        const batchJson = spelledJson({ api_key: 'k', before: [1, { batch: [2] }], batch: list, sent_at: null }, random)
        assertSlices(
          batchJson,
          'batch',
          (parseJsonWithDoubles(batchJson) as { batch: Record<string, unknown>[] }).batch,
        )
        const singleJson = spelledJson(single, random)
        assertSlices(singleJson, null, parsed(`[${singleJson}]`))
      }),
      { numRuns: runs(150, 1_000) },
    )
  })
  it('keeps number literals and the spelling of strings', () => {
    const json = '{"event":"e","properties":{ "a" : 1.0, "b":1e2,"c":12345678901234567890, "a":2 },"$set":{"x":-0}}'
    const [[, properties, set]] = slicesOf(json, null, 1) as [(string | undefined)[]]
    assert.equal(properties, '{ "a" : 1.0, "b":1e2,"c":12345678901234567890, "a":2 }')
    assert.equal(set, '{"x":-0}')
  })
  it('takes the last of repeated keys, like JSON.parse', () => {
    const json = '{"batch":[{"properties":{"a":1}},{}],"batch":[{"properties":1,"prop\\u0065rties":{"a":"é\\\\\\""}}]}'
    assert.equal(slicesOf(json, 'batch', 1)[0]![1], '{"a":"é\\\\\\""}')
  })
  it('takes time proportional to the text, however often the key of the items is repeated', () => {
    const item = '{"event":"e"}'
    const work = (times: number) => {
      const count = 300 * times
      const json = Buffer.from(`{${'"batch":[],'.repeat(count)}"batch":[${Array(count).fill(item).join()}]}`)
      return () => assert.notEqual(findItemSlices(json, 'batch', count), null)
    }
    assert.ok(isLinear(work))
  })
  it('returns nothing of a list that is replaced by a repeated key', () => {
    const sent = '{"offset":1,"properties":{"a":1}}'
    const json = `{"batch":[${sent},1,${sent}],"batch":[],"batch":[{"distinct_id":"a"},{},{"offset":2}]}`
    assert.deepEqual(
      slicesOf(json, 'batch', 3).map(([, ...found]) => found.filter(text => text !== undefined)),
      [['"a"'], [], ['2']],
    )
  })
  it('refuses values nested more deeply than the limit, however deep they are', () => {
    const nested = (depth: number) => `[{"properties":{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}}]`
    assert.notEqual(findItemSlices(Buffer.from(nested(nestingDepthMax)), null, 1), null)
    assert.equal(findItemSlices(Buffer.from(nested(nestingDepthMax + 1)), null, 1), null)
    assert.equal(findItemSlices(Buffer.from(nested(1_000_000)), null, 1), null)
  })
})
