import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { PortError, QueueFullError } from '#ports/port-error.ts'
import { createLookUpBatcher } from './look-up-batcher.ts'

/** Names of another project than most begin with its number. */
const senderOf = (name: string) => (name.startsWith('2:') ? '2' : '1')

/** A store whose statements are answered by hand. */
function manualStore(underWayMax: number) {
  const asked: {
    names: readonly string[]
    answer: (found: (string | PortError | null)[]) => void
    fail: (cause: unknown) => void
  }[] = []
  const lookUps = createLookUpBatcher<string, string>(underWayMax, senderOf, names => {
    const { promise, resolve, reject } = Promise.withResolvers<(string | PortError | null)[]>()
    asked.push({ names, answer: resolve, fail: reject })
    return promise
  })
  return { asked, find: (name: string) => lookUps.find(name, name) }
}

describe('batched look-ups', () => {
  it('query all names requested in one event-loop turn at once, each name once, and answer every caller', async () => {
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

  it('query again in the next turn, and so see commits in between', async () => {
    const { asked, find } = manualStore(2)
    const first = find('a')
    await nextTurn()
    const second = find('a')
    await nextTurn()
    asked[0]!.answer(['old'])
    asked[1]!.answer(['new'])
    assert.deepEqual(await Promise.all([first, second]), ['old', 'new'])
  })

  it('collect names while the maximum number of statements is running', async () => {
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

  it('ask for at most 500 names in one statement', async () => {
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

  it('fail only for the name whose row cannot be read', async () => {
    const { asked, find } = manualStore(1)
    const found = [find('a'), find('b')]
    await nextTurn()
    const corrupt = new PortError('state', 'corrupt')
    asked[0]!.answer([corrupt, 'B'])
    await assert.rejects(found[0]!, corrupt)
    assert.equal(await found[1], 'B')
  })

  it('all fail when their statement fails, and look-ups after the failure query again', async () => {
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

  it('are refused when the maximum number of look-ups is already waiting', async () => {
    const { asked, find } = manualStore(1)
    const first = find('first')
    await nextTurn()
    const waiting = Array.from({ length: 10_000 }, (_, index) => find(`name ${index}`))
    await assert.rejects(find('one more'), { code: 'timeout' })
    asked[0]!.fail(new PortError('state', 'unavailable'))
    const settled = await Promise.allSettled([first, ...waiting])
    assert.ok(settled.every(({ status }) => status === 'rejected'))
  })

  it('let projects take turns when more names wait than fit into one statement', async () => {
    const { asked, find } = manualStore(1)
    const first = find('first')
    await nextTurn()
    const others = Array.from({ length: 2_000 }, (_, index) => find(`name ${index}`))
    const late = ['2:a', '2:b', '2:c'].map(find)
    asked[0]!.answer([null])
    await first
    await nextTurn()
    assert.equal(asked[1]!.names.length, 500)
    assert.deepEqual(asked[1]!.names.slice(0, 7), ['name 0', '2:a', 'name 1', '2:b', 'name 2', '2:c', 'name 3'])
    asked[1]!.fail(new PortError('state', 'unavailable'))
    assert.equal((await Promise.allSettled([...others, ...late])).length, 2_003)
  })

  it('of the project with the most waiting look-ups are refused, latest first, when too many are waiting', async () => {
    const { asked, find } = manualStore(1)
    const first = find('first')
    await nextTurn()
    const waiting = Array.from({ length: 10_000 }, (_, index) => find(`name ${index}`))
    const late = find('2:a')
    await assert.rejects(waiting.at(-1)!, QueueFullError)
    asked[0]!.answer([null])
    await first
    await nextTurn()
    asked[1]!.answer(asked[1]!.names.map(name => name.toUpperCase()))
    assert.equal(await late, '2:A')
    await nextTurn()
    asked[2]!.fail(new PortError('state', 'unavailable'))
    assert.equal((await Promise.allSettled(waiting)).filter(({ status }) => status === 'fulfilled').length, 499)
  })
})
