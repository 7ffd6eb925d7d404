// A job is undone although the event store does not explain, or cannot list the events of, some of its persons and groups.
// Those stay unchanged and are listed; everything else, and the jobs waiting for this one, continue.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ImportJob } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import type { HistorySubjects } from '#ports/events/event-history.ts'
import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import type { ImportWorkDeps } from '#services/imports/job-batch.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { withMethods } from '../../support/with-methods.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { assertRowsHaveTheirPersons, day, personWith } from './random-acts.ts'

type Events = ImportWorkDeps['events']

const tooLarge = () => new QueryTooLargeError('event-store', 'full', new Error('too many rows'))
const tooSlow = () => new PortError('event-store', 'timeout')

/** An event store whose answers are too large for more than two ids at once, and for each of these names even alone. */
function unreadable(events: Events, names: readonly string[], failure: () => Error): Partial<ImportWorkDeps> {
  const check = (asked: readonly string[]) => {
    if (asked.length > 2 || asked.some(name => names.includes(name))) throw failure()
  }
  const namesOf = ({ distinctIds, groups }: HistorySubjects) => distinctIds ?? groups.map(({ key }) => key)
  const refusing: Partial<Events> = {
    readHistory: async (id, subjects) => {
      check(namesOf(subjects))
      return events.readHistory(id, subjects)
    },
    hasRowsOfGroupType: async (...args) => {
      check(['type'])
      return events.hasRowsOfGroupType(...args)
    },
  }
  return { events: withMethods(events, refusing) }
}

export function unreadableEventsContract(engine: string, open: OpenSqlState): void {
  const kOf = async (world: ImportWorld, id: string) =>
    (JSON.parse((await personWith(world, id))?.properties ?? '{}') as JsonObject).k
  const live = (id: string, properties: JsonObject) => anEvent('e', id, properties, { timestampMs: 200 * day })
  const groupEvents = (keys: readonly string[], importJobId: number) =>
    keys.map($group_key => {
      const properties = { $group_type: 'org', $group_key, $group_set: { k: 1 } }
      return anImportedEvent('$groupidentify', 'a', day, properties, { importJobId })
    })
  const groupsOf = async (world: ImportWorld) =>
    (await world.stored()).groups.map(({ group_key, group_properties }) => [group_key, group_properties])
  const implicitJob = async (world: ImportWorld) =>
    (await world.management.listImportJobs(1, { limit: 1, offset: 0 })).jobs[0]!
  const noteSamples = async (world: ImportWorld, job: ImportJob) =>
    Object.fromEntries((await world.management.listImportNotes(job.id)).map(({ reason, samples }) => [reason, samples]))

  describe(`undoing a job on ${engine} when the event store cannot list related events`, () => {
    for (const [what, failure] of [
      ['are too many', tooLarge],
      ['take too long', tooSlow],
    ] as const)
      it(`a person whose events ${what} stays unchanged, and all other persons are undone`, async t => {
        const world = await importWorld(t, open)
        await world.apply(...['flood', 'side', 'user', 'device', 'plain'].map(id => live(id, { $set: { live: id } })))
        const before = await world.stored()
        const job = await world.createJob()
        const set = (id: string) => anImportedEvent('e', id, day, { $set: { k: id } }, { importJobId: job.id })
        const link = (id: string, other: string) =>
          anImportedEvent('$identify', id, day, { $anon_distinct_id: other }, { importJobId: job.id })
        await world.apply(link('flood', 'side'), link('user', 'device'), ...['flood', 'user', 'plain', 'new'].map(set))
        await world.publish(job)
        const left = await personWith(world, 'flood')
        await world.discard(job, unreadable(world.events, ['flood'], failure))

        const samples = await noteSamples(world, job)
        assert.deepEqual(samples, { 'undo_left:events_not_readable': [{ distinctIds: ['flood', 'side'] }] })
        assert.deepEqual(await personWith(world, 'flood'), left)
        const others = before.persons.filter(({ ids }) => !['flood', 'side'].includes(ids))
        assert.deepEqual(
          (await world.stored()).persons.filter(({ ids }) => ids !== 'flood side'),
          others,
        )
        await assertRowsHaveTheirPersons(world)
      })

    const publishFlood = async (world: ImportWorld) => {
      await world.apply(live('flood', {}))
      const job = await world.createJob()
      const set = (id: string) => anImportedEvent('e', id, day, { $set: { k: id } }, { importJobId: job.id })
      await world.apply(...['flood', 'new'].map(set))
      await world.publish(job)
      return job
    }
    const assertFloodIsLeft = async (world: ImportWorld, job: ImportJob) => {
      const samples = await noteSamples(world, job)
      assert.deepEqual(samples, { 'undo_left:events_not_readable': [{ distinctIds: ['flood'] }] })
      assert.deepEqual([await kOf(world, 'flood'), await personWith(world, 'new')], ['flood', undefined])
    }

    it('a person that live events change at every try stays unchanged, and all other persons are undone', async t => {
      const world = await importWorld(t, open)
      const job = await publishFlood(world)
      let count = 0
      const events = withMethods<Events>(world.events, {
        readHistory: async (id, subjects) => {
          const found = await world.events.readHistory(id, subjects)
          if (subjects.distinctIds?.includes('flood')) await world.apply(live('flood', { $set: { count: ++count } }))
          return found
        },
      })
      await world.discard(job, { events, random: () => 0 })
      await assertFloodIsLeft(world, job)
    })

    it('linked persons that are too large for the memory stay unchanged, and are never loaded', async t => {
      const world = await importWorld(t, open)
      const job = await publishFlood(world)
      const { chunks } = world
      const loadChunk: typeof chunks.loadChunk = async (subjects, textBytesMax) => {
        if (!subjects.distinctIds.some(({ distinctId }) => distinctId === 'flood'))
          return chunks.loadChunk(subjects, textBytesMax)
        assert.ok(Number.isFinite(textBytesMax))
        return 'too_large'
      }
      await world.discard(job, { state: withMethods(chunks, { loadChunk }) })
      await assertFloodIsLeft(world, job)
    })

    it('a person whose events could not be read at the first try is still undone', async t => {
      const world = await importWorld(t, open)
      const job = await publishFlood(world)
      let isBusy = true
      const events = withMethods<Events>(world.events, {
        readHistory: async (id, subjects) => {
          if (subjects.distinctIds?.length !== 1) throw tooSlow()
          if (isBusy) {
            isBusy = false
            throw tooSlow()
          }
          return world.events.readHistory(id, subjects)
        },
      })
      await world.discard(job, { events })
      assert.deepEqual([await kOf(world, 'flood'), await personWith(world, 'new')], [undefined, undefined])
      assert.deepEqual(await world.notes(job), {})
    })

    it('a group whose events cannot be read stays unchanged, as does its type', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(...groupEvents(['flood', 'x', 'y', 'z'], job.id))
      await world.publish(job)
      await world.discard(job, unreadable(world.events, ['flood', 'type'], tooLarge))
      assert.deepEqual(await groupsOf(world), [['flood', '{"k":1}']])
      assert.equal((await world.stored()).groupTypes.length, 1)
      assert.deepEqual(await noteSamples(world, job), {
        'undo_left:events_not_readable': [{ groupType: 'org', groupKey: 'flood' }],
        'undo_left:group_type_is_used': [{ groupTypeIndex: 0 }],
      })
    })

    it('a group type without groups stays when its events cannot be read', async t => {
      const world = await importWorld(t, open)
      const job = await world.publishEvents(anImportedEvent('e', 'a', day, { $groups: { org: 'x' } }))
      await world.discard(job, unreadable(world.events, ['type'], tooSlow))
      assert.equal((await world.stored()).groupTypes.length, 1)
      assert.deepEqual(await world.notes(job), { 'undo_left:events_not_readable': 1 })
    })

    it('a person and a group of an implicit job stay unchanged when their events cannot be read', async t => {
      const world = await importWorld(t, open)
      const ids = ['flood', 'x', 'y', 'z']
      await world.apply(...ids.map(id => anImportedEvent('e', id, day, { $set: { k: id } }, { importJobId: 1 })))
      await world.apply(...groupEvents(['flood', 'x', 'y'], 1))
      const job = await implicitJob(world)
      await world.discard(job, unreadable(world.events, ['flood'], tooSlow))
      assert.deepEqual(
        (await world.stored()).persons.map(({ ids }) => ids),
        ['flood'],
      )
      assert.equal(await kOf(world, 'flood'), 'flood')
      assert.deepEqual(await groupsOf(world), [['flood', '{"k":1}']])
      assert.deepEqual(await world.notes(job), { 'undo_left:events_not_readable': 2 })
    })

    it('the undo waits while the event store is unavailable', async t => {
      const world = await importWorld(t, open)
      const job = await world.publishEvents(anImportedEvent('e', 'a', day, { $set: { k: 1 } }))
      const over = unreadable(world.events, ['a'], () => new PortError('event-store', 'unavailable'))
      await assert.rejects(world.discard(job, over), { code: 'unavailable' })
      await world.work().workNow(new AbortController().signal)
      assert.deepEqual((await world.stored()).persons, [])
      assert.deepEqual(await world.notes(job), {})
    })
  })

  describe(`undoing a job on ${engine} when the event store has lost some events from outside the job`, () => {
    const prepare = async (t: TestContext) => {
      const world = await importWorld(t, open)
      const events = {
        value: live('a', { $set: { lost: 1 } }),
        kept: live('a', { $set: { kept: 1 } }),
        link: anEvent('$identify', 'user', { $anon_distinct_id: 'device', $set: { u: 1 } }),
        group: anEvent('$groupidentify', 'a', { $group_type: 'org', $group_key: 'x', $group_set: { lost: 1 } }),
      }
      await world.apply(...Object.values(events))
      const before = await world.stored()
      const [job, waiting] = [await world.createJob(), await world.createJob()]
      const set = (id: string) => anImportedEvent('e', id, day, { $set: { k: id } }, { importJobId: job.id })
      await world.apply(...['a', 'user', 'device', 'new'].map(set), ...groupEvents(['x'], job.id))
      await world.publish(job)
      await world.startPublishing(waiting)
      return { world, before, job, waiting, events }
    }

    it('a value that no event explains stays, and all values that the job set are gone', async t => {
      const { world, before, job, events } = await prepare(t)
      world.forget(events.kept)
      await world.discard(job)
      assert.deepEqual((await world.stored()).persons, before.persons)
      assert.deepEqual(await world.notes(job), {})
    })

    it('a person and a group with no event left outside the job stay unchanged, with notes', async t => {
      const { world, job, events } = await prepare(t)
      for (const event of [events.value, events.kept, events.group]) world.forget(event)
      const left = await personWith(world, 'a')
      await world.discard(job)
      assert.deepEqual(await personWith(world, 'a'), left)
      assert.deepEqual(await groupsOf(world), [['x', '{"lost":1,"k":1}']])
      assert.deepEqual(await noteSamples(world, job), {
        'undo_left:history_is_incomplete': [{ distinctIds: ['a'] }, { groupTypeIndex: 0, groupKey: 'x' }],
      })
    })

    it('a person that no event explains stays unchanged, with a note, and waiting jobs continue', async t => {
      const { world, job, waiting, events } = await prepare(t)
      const left = await personWith(world, 'user')
      world.forget(events.link)
      await world.discard(job)
      assert.deepEqual(await personWith(world, 'user'), left)
      assert.deepEqual([await kOf(world, 'a'), await personWith(world, 'new')], [undefined, undefined])
      const samples = await noteSamples(world, job)
      assert.deepEqual(samples, { 'undo_left:history_is_incomplete': [{ distinctIds: ['device', 'user'] }] })
      assert.equal((await world.management.findImportJob(waiting.id))?.state, 'published')
    })

    it('a person gets a single note even if its ids are on different pages', async t => {
      const { world, job, events } = await prepare(t)
      world.forget(events.link)
      const onePerPage: Partial<Events> = {
        listJobIds: (projectId, id, after) => world.events.listJobIds(projectId, id, after, 1),
      }
      await world.discard(job, { events: withMethods<Events>(world.events, onePerPage) })
      assert.equal(await kOf(world, 'a'), undefined)
      assert.deepEqual(await world.notes(job), { 'undo_left:history_is_incomplete': 1 })
    })
  })
}
