import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildBucketParams } from './bucket-expression.ts'
import { QueryParams } from './query-params.ts'

describe('parameters of a query', () => {
  it('are shared by equal values of the same type', () => {
    const params = new QueryParams()
    const [a, number, same, other] = [params.text('1'), params.number(1), params.text('1'), params.text('')]
    assert.equal(a, same)
    assert.equal(new Set([a, number, other]).size, 3)
    assert.deepEqual(Object.values(params.values), ['1', 1, ''])
  })

  it('have names that are unique among queries and independent of the values', () => {
    const [asked, kept] = [new QueryParams(), new QueryParams('kept_')]
    for (const params of [asked, kept])
      for (const value of ["{x:String}'); DROP", '__proto__', '\\', '\0'])
        assert.match(params.text(value), /^\{\w+:String\}$/)
    const names = [...Object.keys(asked.values), ...Object.keys(kept.values)]
    assert.equal(new Set(names).size, 8)
  })

  it('pass a list as an array, even an empty one, and split it into several arrays if one field cannot hold it', () => {
    const params = new QueryParams()
    assert.equal(params.list('UUID', []), "CAST([], 'Array(UUID)')")
    assert.match(params.list('String', ['a', 'b']), /^\{\w+:Array\(String\)\}$/)
    const long = 'x'.repeat(30_000)
    assert.match(
      params.list('String', [long, long]),
      /^arrayConcat\(\{\w+:Array\(String\)\}, \{\w+:Array\(String\)\}\)$/,
    )
    assert.deepEqual(Object.values(params.values), [['a', 'b'], [long], [long]])
  })

  it('contain the starts of all buckets, in two fields if there are many, and the end of the last bucket', () => {
    for (const count of [1, 2, 5_000, 5_001, 10_000]) {
      const edges = Array.from({ length: count + 1 }, (_, index) => index * 10 - 5)
      const { edges: first, later_edges: later, from, end } = buildBucketParams({ edges })
      assert.deepEqual([...(first as number[]), ...(later as number[])], edges.slice(0, -1))
      assert.equal((first as number[]).length, Math.min(count, 5_000))
      assert.deepEqual([from, end], [-5, count * 10 - 5])
    }
  })
})
