import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { memoryChunkStore } from '../../../tests/support/memory/memory-chunk-store.ts'
import { anEvent } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'

test('a merge that conflicts at every try is given up with a warning, and its event and properties are still applied', async t => {
  const world = aWorld()
  await world.append([anEvent('e', 'anon'), anEvent('e', 'user')])
  const store = memoryChunkStore(world.state)
  let conflictCount = 0
  const contended: ChunkStore = {
    ...store,
    commitChunk: async (changes, position) => {
      if (changes.deletedPersons.length === 0) return store.commitChunk(changes, position)
      conflictCount++
      return 'version_conflict'
    },
  }
  world.start(t, { state: contended, random: () => 0, limits: { conflictTryCount: 3 } })
  await eventually(() => world.isProcessed())
  const merge = anEvent('$identify', 'user', { $anon_distinct_id: 'anon', $set: { plan: 'pro' } })
  await world.send([merge])
  assert.equal(conflictCount, 4)
  const [user, anon] = [world.person('user')!, world.person('anon')!]
  assert.notEqual(user.uuid, anon.uuid)
  assert.deepEqual([user.properties.plan, user.isIdentified, anon.isIdentified], ['pro', true, false])
  const { category, severity, ...details } = world.state.warnings[0]!.details
  assert.equal(world.state.warnings[0]?.type, 'merge_race_condition')
  assert.deepEqual([category, severity], ['merge', 'error'])
  assert.deepEqual(details, {
    sourcePersonDistinctId: 'anon',
    targetPersonDistinctId: 'user',
    distinctId: 'user',
    eventUuid: merge.uuid,
    personId: user.uuid,
    otherPersonId: anon.uuid,
  })
  assert.deepEqual(world.outcomeTotals(), { stored: 3, dropped: 0, rejected: 0 })
})
