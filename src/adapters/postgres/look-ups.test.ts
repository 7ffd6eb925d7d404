import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { PortError } from '#ports/port-error.ts'
import { lookUpTogether } from './look-ups.ts'

/** A store whose statements are answered by hand. */
function manualStore(underWayMax: number) {
  const asked: {
    names: readonly string[]
    answer: (found: (string | PortError | null)[]) => void
    fail: (cause: unknown) => void
  }[] = []
  const lookUps = lookUpTogether<string, string>(underWayMax, names => {
    const { promise, resolve, reject } = Promise.withResolvers<(string | PortError | null)[]>()
    asked.push({ names, answer: resolve, fail: reject })
    return promise
  })
  return { asked, find: (name: string) => lookUps.find(name, name) }
}

describe('look-ups together', () => {
  it('asks once for the names of a turn, each once, and gives every caller its own answer', async () => {
    const { asked, find } = manualStore(2)
    const found = [find('a'), find('b'), find('a'), find('c')]
    assert.equal(asked.length, 0)
    await nextTurn()
    assert.deepEqual(
      asked.map(({ names }) => names),
      [['a', 'b', 'c']],
    )
    asked[0]!.answer(['A', null, 'C'])
    assert.deepEqual(await Promise.all(found), ['A', null, 'A', 'C'])
  })

  it('asks again in the next turn, so that what was committed in between is seen', async () => {
    const { asked, find } = manualStore(2)
    const first = find('a')
    await nextTurn()
    const second = find('a')
    await nextTurn()
    asked[0]!.answer(['old'])
    asked[1]!.answer(['new'])
    assert.deepEqual(await Promise.all([first, second]), ['old', 'new'])
  })

  it('gathers names while enough statements are under way', async () => {
    const { asked, find } = manualStore(1)
    const first = find('a')
    await nextTurn()
    const later: Promise<string | null>[] = []
    for (const name of ['b', 'c', 'd']) {
      later.push(find(name))
      await nextTurn()
    }
    assert.equal(asked.length, 1)
    asked[0]!.answer(['A'])
    assert.equal(await first, 'A')
    await nextTurn()
    assert.deepEqual(asked[1]!.names, ['b', 'c', 'd'])
    asked[1]!.answer(['B', 'C', 'D'])
    assert.deepEqual(await Promise.all(later), ['B', 'C', 'D'])
  })

  it('asks for 500 names at most in one statement', async () => {
    const { asked, find } = manualStore(3)
    const found = Array.from({ length: 1_001 }, (_, index) => find(`name ${index}`))
    await nextTurn()
    assert.deepEqual(
      asked.map(({ names }) => names.length),
      [500, 500, 1],
    )
    for (const { names, answer } of asked) answer([...names])
    assert.equal((await Promise.all(found))[1_000], 'name 1000')
  })

  it('fails a name alone whose row cannot be read', async () => {
    const { asked, find } = manualStore(1)
    const found = [find('a'), find('b')]
    await nextTurn()
    const corrupt = new PortError('state', 'corrupt')
    asked[0]!.answer([corrupt, 'B'])
    await assert.rejects(found[0]!, corrupt)
    assert.equal(await found[1], 'B')
  })

  it('fails everybody who waits when a statement fails, and asks again for who comes later', async () => {
    const { asked, find } = manualStore(1)
    const first = find('a')
    await nextTurn()
    const waiting = find('b')
    const down = new PortError('state', 'unavailable')
    asked[0]!.fail(down)
    await Promise.all([assert.rejects(first, down), assert.rejects(waiting, down)])
    const later = find('b')
    await nextTurn()
    asked[1]!.answer(['B'])
    assert.equal(await later, 'B')
  })

  it('refuses what is too much to wait for', async () => {
    const { asked, find } = manualStore(1)
    const first = find('first')
    await nextTurn()
    const waiting = Array.from({ length: 10_000 }, (_, index) => find(`name ${index}`))
    await assert.rejects(find('one more'), (error: unknown) => error instanceof PortError && error.code === 'timeout')
    asked[0]!.fail(new PortError('state', 'unavailable'))
    const settled = await Promise.allSettled([first, ...waiting])
    assert.ok(settled.every(({ status }) => status === 'rejected'))
  })
})
