import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../tests/support/eventually.ts'
import { memoryDeferredProjects } from '../../../tests/support/memory/memory-deferred-projects.ts'
import { anEvent, anImportedEvent, aProject } from '../../../tests/support/values.ts'
import { aWorld } from '../../../tests/support/world/world.ts'
import type { ProcessingEventStore } from './chunk-deps.ts'

test('an override that a killed worker published without a commit is corrected if live events changed its persons', async t => {
  const world = aWorld()
  const whose = (distinctId: string) =>
    world.events.overrides.get(JSON.stringify([1, distinctId]))?.personId ?? world.person(distinctId)?.uuid
  await world.append(['a', 'b', 'other'].map(id => anEvent('e', id)))
  let hasPublished = false
  const first = world.start(t, {
    faultPoint: async name => {
      if (name !== 'insert' || world.events.overrides.size === 0) return
      hasPublished = true
      await new Promise(() => {}) // killed
    },
  })
  await eventually(() => world.isProcessed())
  await world.append([anImportedEvent('$identify', 'a', 1_000, { $anon_distinct_id: 'b' })], 'import')
  await eventually(() => hasPublished)
  assert.equal(whose('b'), world.person('a')?.uuid)

  await world.append([anEvent('$identify', 'b', { $anon_distinct_id: 'other' })])
  world.start(t)
  await eventually(async () => (await world.isProcessed()) && (await world.isProcessed('historical')))
  assert.notEqual(
    world.person('a')?.uuid,
    world.person('b')?.uuid,
    'b was identified in between, so the import does not link it',
  )
  for (const id of ['a', 'b', 'other']) assert.equal(whose(id), world.person(id)?.uuid, `whose ${id} is`)
  first.stop()
})

test('a worker stops loading overrides published by earlier workers once there can be no more of them', async t => {
  const world = aWorld()
  const asked: string[][] = []
  const events: ProcessingEventStore = {
    insert: rows => world.events.insert(rows),
    findChargedTimes: identities => world.events.findChargedTimes(identities),
    findFlagCalls: calls => world.events.findFlagCalls(calls),
    findOverrides: ids => {
      asked.push(ids.map(({ distinctId }) => distinctId))
      return world.events.findOverrides(ids)
    },
  }
  await world.process(t, [anEvent('e', 'ada')])
  await world.append([anEvent('e', 'ada')])
  let emptyReadCount = 0
  const log = {
    ...world.log,
    read: async (...args: Parameters<typeof world.log.read>) => {
      const chunk = await world.log.read(...args)
      if (chunk.records.length === 0) emptyReadCount++
      return chunk
    },
  }
  world.start(t, { events, log })
  await eventually(() => world.isProcessed())
  assert.deepEqual(asked, [['ada']])
  const before = emptyReadCount
  await eventually(() => emptyReadCount > before + 2, { what: 'a further read without records' })
  await world.send([anEvent('e', 'ada')])
  assert.equal(asked.length, 1)
})

test('a worker that defers a project also loads overrides that were published for the deferred records', async t => {
  const world = aWorld()
  world.state.projects.set(2, aProject({ id: 2 }))
  await world.append(['a', 'b', 'other'].map(id => anEvent('e', id)))
  const large = anEvent('$set', 'large', { $set: { text: 'x'.repeat(600_000) } })
  await world.append([large, ...Array.from({ length: 20 }, () => anEvent('e', 'large'))])
  await world.append([anEvent('$identify', 'a', { $anon_distinct_id: 'b' })])
  let hasPublished = false
  const first = world.start(t, {
    faultPoint: async name => {
      if (name !== 'insert' || world.events.overrides.size === 0) return
      hasPublished = true
      await new Promise(() => {}) // killed
    },
  })
  await eventually(() => hasPublished)

  world.clock.advance(2_000)
  const asked: string[] = []
  const events: ProcessingEventStore = {
    insert: rows => world.events.insert(rows),
    findChargedTimes: identities => world.events.findChargedTimes(identities),
    findFlagCalls: calls => world.events.findFlagCalls(calls),
    findOverrides: ids => {
      asked.push(...ids.map(({ distinctId }) => distinctId))
      return world.events.findOverrides(ids)
    },
  }
  const deferring = { projects: memoryDeferredProjects(world.state), hasOtherProjects: async () => true }
  let wasDeferred = false
  world.start(t, {
    events,
    deferring,
    limits: { recordCountMax: 10 },
    faultPoint: () => {
      wasDeferred ||= world.state.deferred.size > 0
    },
  })
  await eventually(() => world.isProcessed('main'))
  await eventually(() => world.state.deferred.size === 0)
  assert.ok(wasDeferred)
  assert.ok(asked.includes('b'), asked.join(' '))
  first.stop()
})
