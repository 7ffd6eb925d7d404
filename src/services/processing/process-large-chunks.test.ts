// Tests that the size of a chunk is limited: any client can make small events belong to large persons.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { memoryChunkStore } from '../../../tests/support/memory/memory-chunk-store.ts'
import { keyOf } from '../../../tests/support/memory/memory-state.ts'
import { aCapturedEvent, aMapping, aPerson, setEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { ProcessorOptions } from './process-events.ts'

/** Many persons of ten thousand characters, and an event for each. */
async function aWorldOfFatPersons() {
  const world = aWorld()
  const fat = 'x'.repeat(10_000)
  const ids = Array.from({ length: 64 }, (_, n) => `fat-${n}`)
  for (const [n, distinctId] of ids.entries()) {
    const person = aPerson({ uuid: `00000000-0000-5000-8000-${String(n).padStart(12, '0')}`, properties: { fat } })
    world.state.persons.set(keyOf(1, person.uuid), person)
    world.state.mappings.set(keyOf(1, distinctId), aMapping(person, distinctId))
  }
  await world.append(ids.map((distinctId, n) => aCapturedEvent(n + 1, { distinctId })))
  return { world, ids }
}

describe('large chunks', () => {
  it('are split if they would load more text of persons than allowed, and every event is stored once', async t => {
    const { world, ids } = await aWorldOfFatPersons()
    const store = memoryChunkStore(world.state)
    const loads: (number | 'too_large')[] = []
    const watched: ChunkStore = {
      ...store,
      loadChunk: async (subjects, textBytesMax) => {
        const loaded = await store.loadChunk(subjects, textBytesMax)
        loads.push(loaded === 'too_large' ? loaded : loaded.persons.length)
        return loaded
      },
    }
    world.start(t, { state: watched, limits: { textBytesMax: 100_000 } })
    await eventually(() => world.isProcessed())
    assert.deepEqual(
      loads.filter(load => load !== 'too_large'),
      Array(8).fill(8),
    )
    assert.deepEqual(world.events.inserted.map(({ distinctId }) => distinctId).toSorted(), ids.toSorted())
    assert.deepEqual(world.outcomeTotals(), { stored: 64, dropped: 0, rejected: 0 })
  })

  it('are split down to a single record, which may exceed the limit', async t => {
    const { world } = await aWorldOfFatPersons()
    world.start(t, { limits: { textBytesMax: 5_000 } })
    await eventually(() => world.isProcessed())
    assert.equal(world.events.inserted.length, 64)
    assert.deepEqual(world.outcomeTotals(), { stored: 64, dropped: 0, rejected: 0 })
  })

  it('are split if many events change one large person', async t => {
    const world = aWorld()
    await world.process(t, [setEvent(1, 'ada', { fat: 'x'.repeat(10_000) })], { limits: { textBytesMax: 100_000 } })
    await world.send(Array.from({ length: 64 }, (_, n) => setEvent(n + 2, 'ada', { visits: n })))
    assert.equal(world.person('ada')?.properties.visits, 63)
    assert.equal(world.events.insertCount, 1 + 64 / 8)
    assert.deepEqual(world.outcomeTotals(), { stored: 65, dropped: 0, rejected: 0 })
  })

  it('that had to be split are followed by smaller chunks', async t => {
    const { world } = await aWorldOfFatPersons()
    await world.append(Array.from({ length: 600 }, (_, n) => aCapturedEvent(n + 100, { distinctId: `fat-${n % 64}` })))
    const counts: number[] = []
    const log: ProcessorOptions['log'] = {
      ...world.log,
      read: (stream, fromOffset, limits) => {
        if (stream === 'main') counts.push(limits.recordCountMax)
        return world.log.read(stream, fromOffset, limits)
      },
    }
    world.start(t, { log, limits: { textBytesMax: 1_000_000 } })
    await eventually(() => world.isProcessed())
    // 500 events of 10,000 characters are halved down to 62 and 63. From then on chunks fit, even slightly larger ones.
    assert.deepEqual(counts.slice(0, 4), [500, 63, 83, 84])
    assert.deepEqual(world.outcomeTotals(), { stored: 664, dropped: 0, rejected: 0 })
  })
})
