import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoricLink } from '#ports/events/event-history.ts'
import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import { findConnectedIds } from './find-connected-ids.ts'

const tooLarge = () => new QueryTooLargeError('event-store', 'full', new Error('too many rows'))

/** An event store with these links. `refuse` throws for questions that it cannot answer. */
function storeOf(links: readonly (readonly [string, string])[], refuse: (ids: readonly string[]) => void = () => {}) {
  const asked: (readonly string[])[] = []
  const findLinks = async (_projectId: number, ids: readonly string[]): Promise<readonly HistoricLink[]> => {
    asked.push(ids)
    refuse(ids)
    const some = new Set(ids)
    return links
      .filter(pair => pair.some(id => some.has(id)))
      .map(([distinctId, linkedId]) => ({ distinctId, linkedId }))
  }
  return { asked, deps: { events: { findLinks }, random: () => 0 } }
}

async function componentsOf(ids: readonly string[], { deps }: ReturnType<typeof storeOf>) {
  const { found, unreadable } = await findConnectedIds(1, ids, deps, new AbortController().signal)
  const shown = (all: typeof found) => all.map(each => each.toSorted().join(' ')).sort()
  return { found: shown(found), unreadable: shown(unreadable) }
}

test('ids that are linked, in either direction and through other ids, form one component', async () => {
  const store = storeOf([
    ['b', 'a'],
    ['b', 'c'],
    ['d', 'c'],
    ['x', 'y'],
  ])
  const expected = { found: ['a b c d', 'x y', 'z'], unreadable: [] }
  assert.deepEqual(await componentsOf(['a', 'y', 'z'], store), expected)
  assert.deepEqual(await componentsOf(['a', 'y', 'z', 'd', 'x'], store), expected)
})

test('the links of each id are queried once', async () => {
  const store = storeOf([
    ['a', 'b'],
    ['b', 'a'],
    ['b', 'c'],
  ])
  await componentsOf(['a', 'c'], store)
  assert.deepEqual(store.asked.flat().sort(), ['a', 'b', 'c'])
})

test('an empty list of ids has no component and causes no query', async () => {
  const store = storeOf([])
  assert.deepEqual(await componentsOf([], store), { found: [], unreadable: [] })
  assert.deepEqual(store.asked, [])
})

test('ids are queried in halves if the event store cannot answer for all of them', async () => {
  const store = storeOf([['a', 'e']], ids => {
    if (ids.length > 2) throw tooLarge()
  })
  const { found } = await componentsOf(['a', 'b', 'c', 'd', 'e'], store)
  assert.deepEqual(found, ['a e', 'b', 'c', 'd'])
})

test('a component that contains an id whose links cannot be read is unreadable, but other components are not', async () => {
  for (const failure of [tooLarge, () => new PortError('event-store', 'timeout')]) {
    const store = storeOf(
      [
        ['a', 'flood'],
        ['flood', 'b'],
        ['c', 'd'],
      ],
      ids => {
        if (ids.includes('flood')) throw failure()
      },
    )
    const components = await componentsOf(['a', 'c', 'b'], store)
    assert.deepEqual(components, { found: ['c d'], unreadable: ['a b flood'] })
  }
})

test('an id is queried again before it counts as unreadable', async () => {
  let isFirst = true
  const store = storeOf([['a', 'b']], () => {
    if (!isFirst) return
    isFirst = false
    throw new PortError('event-store', 'timeout')
  })
  assert.deepEqual(await componentsOf(['a'], store), { found: ['a b'], unreadable: [] })
})

test('a component that is too large counts as unreadable, and is not followed any further', async () => {
  const hub = Array.from({ length: 10_001 }, (_, index) => ['hub', `id${index}`] as const)
  const store = storeOf([...hub, ['id5', 'beyond'], ['c', 'd']])
  const { found, unreadable } = await componentsOf(['hub', 'c'], store)
  assert.deepEqual(found, ['c d'])
  assert.equal(unreadable.length, 1)
  assert.ok(!unreadable[0]!.split(' ').includes('beyond'))
})

test('an event store that is unavailable ends the search', async () => {
  const store = storeOf([], () => {
    throw new PortError('event-store', 'unavailable')
  })
  await assert.rejects(componentsOf(['a', 'b'], store), { code: 'unavailable' })
})
