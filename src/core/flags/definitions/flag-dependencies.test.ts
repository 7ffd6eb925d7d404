import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { orderByDependencies, parseDependencyId } from './flag-dependencies.ts'

describe('parseDependencyId', () => {
  it('distinguishes the number of a flag that does not exist from a text that is not a number', () => {
    assert.equal(parseDependencyId('12'), 12)
    for (const key of ['', '-5', '99999999999999999999']) assert.equal(parseDependencyId(key), -1, key)
    for (const key of ['beta', '1.5', ' 5', '5x']) assert.equal(parseDependencyId(key), null, key)
  })
})

describe('orderByDependencies', () => {
  it('orders every flag after its dependencies, and removes cycles with everything that depends on them', () => {
    const graph = fc.array(fc.array(fc.nat(11), { maxLength: 3 }), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(graph, lists => {
        const ids = lists.map(list => list.filter(id => id < lists.length))
        const positionOfId = new Map(ids.map((_list, position) => [position, position]))
        const { order, cyclic, missing } = orderByDependencies(ids, positionOfId)
        assert.equal(missing.size, 0)
        assert.equal(order.length + cyclic.size, ids.length)
        for (const [place, position] of order.entries()) {
          for (const dependency of ids[position]!) assert.ok(order.indexOf(dependency) < place)
        }
        for (const position of cyclic) assert.ok(ids[position]!.some(dependency => cyclic.has(dependency)))
      }),
    )
  })

  it('reports a missing flag to its dependants, but not through a flag that takes no part in the evaluation', () => {
    // 0 misses 99; 1 tests 0; 2 is inactive and misses 99; 3 tests 2.
    const { missing, order } = orderByDependencies(
      [[99], [0], undefined, [2]],
      new Map([0, 1, 2, 3].map(id => [id, id])),
    )
    assert.deepEqual([...missing].sort(), [0, 1])
    assert.deepEqual([...order].sort(), [0, 1, 3])
  })
})
