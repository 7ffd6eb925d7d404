import assert from 'node:assert/strict'
import { test } from 'node:test'
import { anEvent, anImportedEvent } from '../../../tests/support/apply-events.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { aWorld } from '../../../tests/support/processing-world.ts'

test('a link that a worker told the event store of and could not commit is taken back when live events overtook it', async t => {
  const world = aWorld()
  const whose = (distinctId: string) =>
    world.events.overrides.get(JSON.stringify([1, distinctId]))?.personId ?? world.person(distinctId)?.uuid
  await world.append(['a', 'b', 'other'].map(id => anEvent('e', id)))
  let isTold = false
  const first = world.start(t, {
    faultPoint: async name => {
      if (name !== 'insert' || world.events.overrides.size === 0) return
      isTold = true
      await new Promise(() => {}) // killed
    },
  })
  await eventually(() => world.isProcessed())
  await world.append([anImportedEvent('$identify', 'a', 1_000, { $anon_distinct_id: 'b' })], 'historical')
  await eventually(() => isTold)
  assert.equal(whose('b'), world.person('a')?.uuid)

  await world.append([anEvent('$identify', 'b', { $anon_distinct_id: 'other' })])
  world.start(t)
  await eventually(async () => (await world.isProcessed()) && (await world.isProcessed('historical')))
  assert.notEqual(
    world.person('a')?.uuid,
    world.person('b')?.uuid,
    'identified meanwhile, so the import links it to nobody',
  )
  for (const id of ['a', 'b', 'other']) assert.equal(whose(id), world.person(id)?.uuid, `whose ${id} is`)
  first.stop()
})

test('a worker asks for what was told before it only as long as it may have been', async t => {
  const world = aWorld()
  const asked: string[][] = []
  const events = Object.assign(Object.create(world.events), {
    findOverrides: (ids: readonly { distinctId: string }[]) => {
      asked.push(ids.map(({ distinctId }) => distinctId))
      return world.events.findOverrides(ids as Parameters<typeof world.events.findOverrides>[0])
    },
  }) as typeof world.events
  await world.append([anEvent('e', 'ada')])
  world.start(t)
  await eventually(() => world.isProcessed())
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
  await eventually(() => emptyReadCount > before + 2, { what: 'looking once more and finding nothing' })
  await world.append([anEvent('e', 'ada')])
  await eventually(() => world.isProcessed())
  assert.equal(asked.length, 1)
})
