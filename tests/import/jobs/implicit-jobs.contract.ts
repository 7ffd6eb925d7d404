// Imports without a job belong to the implicit job of their day.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { aCapturedReject, anEvent, anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { day, personWith, withoutMarks } from './random-acts.ts'

export function implicitJobsContract(engine: string, open: OpenSqlState): void {
  describe(`imports without a job on ${engine}`, () => {
    const asImport = (name: string, distinctId: string, properties: JsonObject) =>
      anImportedEvent(name, distinctId, day, properties)

    it("a day's imports belong to an implicit job, and undoing it removes what they wrote", async t => {
      const world = await importWorld(t, open)
      await world.apply(anEvent('e', 'a', { $set: { kept: 1 } }, { timestampMs: 200 * day }))
      const before = await world.stored()
      await world.apply(
        asImport('e', 'a', { $set: { plan: 'old' } }),
        asImport('e', 'b', { $set: { plan: 'old' } }),
        asImport('$groupidentify', 'a', { $group_type: 'org', $group_key: 'x', $group_set: { tier: 1 } }),
      )
      const { jobs } = await world.management.listImportJobs(1, { limit: 10, offset: 0 })
      assert.deepEqual(
        jobs.map(({ day, state }) => [day, state]),
        [[new Date(1_790_000_000_001).toISOString().slice(0, 10), 'published']],
      )
      assert.deepEqual(
        [...world.events.rows.values()].map(({ importJobId, importPartition }) => [importJobId, importPartition]),
        [[0, undefined], ...Array(3).fill([jobs[0]!.id, 1])],
      )
      await world.discard(jobs[0]!)
      const { persons, groups } = await world.stored()
      assert.deepEqual(groups, [])
      assert.deepEqual(
        persons.map(({ ids, properties }) => [ids, properties]),
        before.persons.map(({ ids, properties }) => [ids, properties]),
      )
      assert.equal(world.events.rows.size, 1)
    })

    it('after the implicit job was undone, later imports of the day get a new one, and delayed ones are dropped', async t => {
      const world = await importWorld(t, open)
      const now = (plan: string) => ({
        ...asImport('e', 'a', { $set: { plan } }),
        capturedAtMs: world.clock.nowMs(),
      })
      const late = now('late')
      await world.apply(now('old'))
      const [first] = (await world.management.listImportJobs(1, { limit: 10, offset: 0 })).jobs
      await world.discard(first!)
      await world.apply(late)
      assert.deepEqual([(await world.stored()).persons, world.events.rows.size], [[], 0])
      await world.apply(now('newer'))
      assert.equal((await world.management.listImportJobs(1, { limit: 10, offset: 0 })).count, 2)
      assert.match((await personWith(world, 'a'))!.properties, /newer/)
    })

    const group = { $group_type: 'org', $group_key: 'x' }
    const both = (k: number, atMs: number, importJobId?: number) =>
      [
        ...[anImportedEvent('e', 'a', atMs, { $set: { k }, $set_once: { once: k } })],
        ...[anImportedEvent('$groupidentify', 'a', atMs, { ...group, $group_set: { k } })],
      ].map(event => (importJobId === undefined ? event : { ...event, importJobId }))
    const values = async (world: ImportWorld) => {
      const { k, once } = JSON.parse((await personWith(world, 'a'))!.properties) as JsonObject
      const [{ group_properties }] = (await world.stored()).groups as [{ group_properties: string }]
      return [k, once, JSON.parse(group_properties)] as const
    }
    const firstDay = async (world: ImportWorld) =>
      (await world.management.listImportJobs(1, { limit: 10, offset: 0 })).jobs
        .filter(({ day }) => day !== null)
        .at(-1)!
    const withLiveSubjects = async (t: TestContext) => {
      const world = await importWorld(t, open)
      await world.apply(
        anEvent('e', 'a', {}, { timestampMs: 200 * day }),
        anEvent('$groupidentify', 'a', { ...group, $group_set: { live: 1 } }),
      )
      return { world, before: await shownBy(world) }
    }

    for (const isBefore of [true, false])
      it(`undoing implicit imports restores the values of a job published ${isBefore ? 'before' : 'after'} them, and undoing that job removes these`, async t => {
        const { world, before } = await withLiveSubjects(t)
        const job = await world.createJob()
        await world.apply(...both(1, 3 * day, job.id))
        if (isBefore) await world.publish(job)
        await world.apply(...both(2, 5 * day))
        if (!isBefore) await world.publish(job)
        assert.deepEqual(await values(world), [2, 1, { live: 1, k: 2 }])
        const implicitJob = await firstDay(world)
        await world.discard(implicitJob)
        assert.deepEqual(await values(world), [1, 1, { live: 1, k: 1 }])
        assert.deepEqual(await world.notes(implicitJob), {})
        await world.discard(job)
        assert.deepEqual(await shownBy(world), before)
      })

    it('undoing one day restores the values of another day', async t => {
      const { world, before } = await withLiveSubjects(t)
      const onDay = (place: number, ...events: CapturedEvent[]) =>
        world.apply(...events.map(event => ({ ...event, capturedAtMs: event.capturedAtMs + place * day })))
      await onDay(0, ...both(2, 5 * day))
      await onDay(1, ...both(1, 3 * day))
      assert.deepEqual(await values(world), [2, 1, { live: 1, k: 2 }])
      const { jobs } = await world.management.listImportJobs(1, { limit: 10, offset: 0 })
      await world.discard(jobs.at(-1)!)
      assert.deepEqual(await values(world), [1, 1, { live: 1, k: 1 }])
      await world.discard(jobs[0]!)
      assert.deepEqual(await shownBy(world), before)
    })

    it('undoing implicit imports restores a $set_once value of another import that they had shadowed', async t => {
      const { world, before } = await withLiveSubjects(t)
      await world.apply(anImportedEvent('e', 'a', 5 * day, { $set: { k: 2 } }))
      const job = await world.createJob()
      await world.apply(anImportedEvent('e', 'a', 3 * day, { $set_once: { k: 1 } }, { importJobId: job.id }))
      await world.publish(job)
      const valueNow = async () => (JSON.parse((await personWith(world, 'a'))!.properties) as JsonObject).k
      assert.equal(await valueNow(), 2)
      const implicitJob = await firstDay(world)
      await world.discard(implicitJob)
      assert.equal(await valueNow(), 1)
      assert.deepEqual(await world.notes(implicitJob), {})
      await world.discard(job)
      assert.deepEqual((await shownBy(world)).persons, before.persons)
    })

    it('undoing a job does not restore implicit imports that were undone before it', async t => {
      const { world, before } = await withLiveSubjects(t)
      await world.apply(...both(1, 3 * day))
      const job = await world.createJob()
      await world.apply(...both(2, 5 * day, job.id), ...both(3, 2 * day, job.id))
      await world.publish(job)
      await world.discard(await firstDay(world))
      assert.deepEqual(await values(world), [2, 3, { live: 1, k: 2 }])
      await world.discard(job)
      assert.deepEqual(await shownBy(world), before)
    })

    it('undoing implicit imports restores a live first touch that they had blocked', async t => {
      const { world } = await withLiveSubjects(t)
      await world.apply(...both(1, 3 * day))
      await world.apply(anEvent('e', 'a', { $set_once: { k: 'live' } }, { timestampMs: 201 * day }))
      assert.equal((await values(world))[0], 1)
      await world.discard(await firstDay(world))
      assert.deepEqual(await values(world), ['live', undefined, { live: 1 }])
    })

    it('persons and groups written by both implicit imports and a job are gone after both are undone', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(...both(1, 3 * day, job.id))
      await world.apply(...both(2, 5 * day))
      await world.publish(job)
      await world.discard(await firstDay(world))
      assert.deepEqual(await values(world), [1, 1, { k: 1 }])
      await world.discard(job)
      const { persons, groups } = await world.stored()
      assert.deepEqual([persons, groups], [[], []])
    })

    it('undoing implicit imports removes a person whose properties were dropped as too large', async t => {
      const world = await importWorld(t, open)
      await world.apply(asImport('e', 'a', { $set: { k: 'x'.repeat(700_000) } }))
      assert.deepEqual(Object.keys(JSON.parse((await personWith(world, 'a'))!.properties)), ['$creator_event_uuid'])
      await world.discard(await firstDay(world))
      assert.deepEqual((await world.stored()).persons, [])
    })

    it('undoing implicit imports keeps a group that a live event describes', async t => {
      const world = await importWorld(t, open)
      await world.apply(...both(1, 3 * day))
      await world.apply(anEvent('$groupidentify', 'a', { ...group, $group_set: {} }, { timestampMs: 200 * day }))
      await world.discard(await firstDay(world))
      assert.deepEqual(
        (await world.stored()).groups.map(({ group_properties }) => group_properties),
        ['{}'],
      )
    })

    it('rejects appear in the report of their day, and once in the warnings of the project', async t => {
      const world = await importWorld(t, open)
      const refused = (importJobId: number) =>
        aCapturedReject({ lane: 'historical', historicalMigration: true, importJobId, reason: 'timestamp_invalid' })
      for (let count = 0; count < 3; count++) await world.refuse(refused(1))
      const [implicitJob] = (await world.management.listImportJobs(1, { limit: 10, offset: 0 })).jobs
      assert.deepEqual(await world.notes(implicitJob!), { timestamp_invalid: 3 })
      assert.deepEqual(
        [...world.events.rejected.values()].map(({ importJobId }) => importJobId),
        [1, 1, 1],
        'rejects replayed later belong to the same day',
      )
      const job = await world.createJob()
      await world.refuse(refused(job.id))
      assert.deepEqual(await world.notes(job), { timestamp_invalid: 1 })
      const [listed] = await world.management.listWarnings(1, { sinceMs: 0, sampleCountMax: 10 })
      assert.deepEqual(
        listed?.warnings.map(({ details }) => details.report).toSorted(),
        [implicitJob!.id, job.id].map(id => `/api/projects/1/import_jobs/${id}/report/`),
      )
    })
  })
}

/** Omits what is not guaranteed: the order of restored keys, and creation times, which implicit jobs do not restore. */
async function shownBy(world: ImportWorld) {
  const { persons, groups } = await withoutMarks(world)
  const untimed = <Row extends object>(rows: readonly Row[]) => rows.map(row => ({ ...row, created_at: 0 }))
  return { persons: untimed(persons), groups: untimed(groups) }
}
