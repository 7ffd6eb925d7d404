// A job is undone although the event store cannot say which other events use some of its persons and groups. Those stay
// unchanged and are listed; everything else, and the jobs waiting for this one, continue.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import type { ImportWorkDeps } from '#services/imports/job-batch.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { assertRowsHaveTheirPersons, day, personWith } from './random-acts.ts'

type Events = ImportWorkDeps['events']

/** An event store whose answers are too large for more than two ids at once, and for each of these names even alone. */
function unreadable(events: Events, names: ReadonlySet<string>, failure: () => Error): Events {
  const check = (asked: readonly string[]) => {
    if (asked.length > 2 || asked.some(name => names.has(name))) throw failure()
  }
  return new Proxy(events, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]): Promise<unknown> => {
        if (name === 'findOtherUses' || name === 'findUsedIds') check(args[2] as string[])
        if (name === 'findLaterWrites') check(args[1] as string[])
        if (name === 'findOtherGroupUses') check((args[2] as { key: string }[]).map(({ key }) => key))
        if (name === 'hasRowsOfGroupType') check(['type'])
        return Reflect.apply(value, target, args)
      }
    },
  })
}

export function unreadableEventsContract(engine: string, open: OpenSqlState): void {
  const asIs = async (world: ImportWorld, id: string) => (await personWith(world, id))?.properties

  describe(`undoing a job on ${engine} when the event store cannot list related events`, () => {
    for (const [what, failure] of [
      ['are too many', () => new QueryTooLargeError('event-store', 'full', new Error('too many rows'))],
      ['take too long', () => new PortError('event-store', 'timeout')],
    ] as const)
      it(`a person whose events ${what} stays unchanged, and all others are undone`, async t => {
        const world = await importWorld(t, open)
        const live = (id: string) => anEvent('e', id, { $set: { live: id } }, { timestampMs: 200 * day })
        await world.apply(...['flood', 'side', 'user', 'device', 'plain'].map(live))
        const before = await world.stored()
        const job = await world.createJob()
        const set = (id: string) => anImportedEvent('e', id, day, { $set: { k: id } }, { importJobId: job.id })
        const link = (id: string, other: string) =>
          anImportedEvent('$identify', id, day, { $anon_distinct_id: other }, { importJobId: job.id })
        await world.apply(link('flood', 'side'), link('user', 'device'), ...['flood', 'user', 'plain', 'new'].map(set))
        await world.publish(job)
        const left = await asIs(world, 'flood')
        await world.discard(job, { events: unreadable(world.events, new Set(['flood']), failure) })

        assert.deepEqual(await world.notes(job), { 'undo_left:events_not_readable': 2 })
        assert.equal((await personWith(world, 'flood'))?.ids, 'flood side')
        assert.equal(await asIs(world, 'flood'), left)
        const others = before.persons.filter(({ ids }) => !['flood', 'side'].includes(ids))
        const stored = (await world.stored()).persons.filter(({ ids }) => ids !== 'flood side')
        assert.deepEqual(stored, others)
        await assertRowsHaveTheirPersons(world)
      })

    it('a group whose events cannot be read stays unchanged, and so does its type', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      const group = (key: string) =>
        anImportedEvent(
          '$groupidentify',
          'a',
          day,
          { $group_type: 'org', $group_key: key, $group_set: { k: 1 } },
          { importJobId: job.id },
        )
      await world.apply(...['flood', 'x', 'y', 'z'].map(group))
      await world.publish(job)
      const names = new Set(['flood', 'type'])
      const failure = () => new QueryTooLargeError('event-store', 'full', new Error('too many rows'))
      await world.discard(job, { events: unreadable(world.events, names, failure) })
      const { groups, groupTypes } = await world.stored()
      assert.deepEqual(
        groups.map(({ group_key, group_properties }) => [group_key, group_properties]),
        [['flood', '{"k":1}']],
      )
      assert.equal(groupTypes.length, 1)
      assert.deepEqual(await world.notes(job), {
        'undo_left:events_not_readable': 1,
        'undo_left:group_type_is_used': 1,
      })
    })

    it('a group type without groups stays when its events cannot be read', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anImportedEvent('e', 'a', day, { $groups: { org: 'x' } }, { importJobId: job.id }))
      await world.publish(job)
      const failure = () => new PortError('event-store', 'timeout')
      await world.discard(job, { events: unreadable(world.events, new Set(['type']), failure) })
      assert.equal((await world.stored()).groupTypes.length, 1)
      assert.deepEqual(await world.notes(job), { 'undo_left:events_not_readable': 1 })
    })

    it('a person of an implicit job stays unchanged when its events cannot be read', async t => {
      const world = await importWorld(t, open)
      await world.apply(
        ...['flood', 'x', 'y', 'z'].map(id => anImportedEvent('e', id, day, { $set: { k: id } }, { importJobId: 1 })),
      )
      const { jobs } = await world.management.listImportJobs(1, { limit: 1, offset: 0 })
      const failure = () => new PortError('event-store', 'timeout')
      await world.discard(jobs[0]!, { events: unreadable(world.events, new Set(['flood']), failure) })
      const { persons } = await world.stored()
      assert.deepEqual(
        persons.map(({ ids, properties }) => [ids, (JSON.parse(properties) as JsonObject).k]),
        [['flood', 'flood']],
      )
      assert.deepEqual(await world.notes(jobs[0]!), { 'undo_left:events_not_readable': 1 })
    })

    it('a group of an implicit job stays unchanged when its events cannot be read', async t => {
      const world = await importWorld(t, open)
      const ofGroup = ($group_key: string) => ({ $group_type: 'org', $group_key, $group_set: { k: 1 } })
      await world.apply(
        ...['flood', 'x', 'y'].map(key =>
          anImportedEvent('$groupidentify', 'a', day, ofGroup(key), { importJobId: 1 }),
        ),
      )
      const { jobs } = await world.management.listImportJobs(1, { limit: 1, offset: 0 })
      const failure = () => new PortError('event-store', 'timeout')
      await world.discard(jobs[0]!, { events: unreadable(world.events, new Set(['flood']), failure) })
      const { groups } = await world.stored()
      assert.deepEqual(
        groups.map(({ group_key, group_properties }) => [group_key, group_properties]),
        [['flood', '{"k":1}']],
      )
      assert.deepEqual(await world.notes(jobs[0]!), { 'undo_left:events_not_readable': 1 })
    })

    it('the undo waits while the event store is unavailable', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anImportedEvent('e', 'a', day, { $set: { k: 1 } }, { importJobId: job.id }))
      await world.publish(job)
      const away = () => new PortError('event-store', 'unavailable')
      const events = unreadable(world.events, new Set(['a']), away)
      await assert.rejects(world.discard(job, { events }), { code: 'unavailable' })
      await world.work().workNow(new AbortController().signal)
      assert.deepEqual((await world.stored()).persons, [])
      assert.deepEqual(await world.notes(job), {})
    })
  })
}
