// Undoing links and merges of a job when other events also support them, and restoring what the persons had before.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ImportJob } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { assertRowsHaveTheirPersons, day, personWith } from './random-acts.ts'

export function heldLinksContract(engine: string, open: OpenSqlState): void {
  const live = (name: string, id: string, properties: JsonObject, atDay = 200) =>
    anEvent(name, id, properties, { timestampMs: atDay * day })
  const identify = (user: string, device: string) => live('$identify', user, { $anon_distinct_id: device })
  const link = (job: ImportJob, user: string, device: string) =>
    anImportedEvent('$identify', user, day, { $anon_distinct_id: device }, { importJobId: job.id })

  /** A user and a device, each with a person, linked by a published job. */
  async function linked(t: TestContext, jobCount = 1) {
    const world = await importWorld(t, open)
    await world.apply(live('e', 'user', { $set: { u: 1 } }), live('e', 'device', { $set: { d: 1 } }))
    const before = await world.stored()
    const jobs: ImportJob[] = []
    for (let count = 0; count < jobCount; count++) jobs.push(await world.createJob())
    await world.apply(link(jobs[0]!, 'user', 'device'))
    await world.publish(jobs[0]!)
    assert.equal((await personWith(world, 'user'))?.ids, 'device user')
    return { world, before, jobs: jobs as [ImportJob, ...ImportJob[]] }
  }

  describe(`undoing a link of an import job on ${engine}`, () => {
    it('a link that a live event repeated stays, with everything its merge brought', async t => {
      const { world, jobs } = await linked(t)
      await world.apply(identify('user', 'device'))
      await world.discard(jobs[0])
      const { ids, properties, is_identified } = (await personWith(world, 'user'))!
      const { u, d } = JSON.parse(properties) as JsonObject
      assert.deepEqual([ids, u, d, is_identified], ['device user', 1, 1, 1])
      assert.deepEqual(await world.notes(jobs[0]), { 'undo_left:link_was_confirmed': 1 })
    })

    it('a link is removed when the live event asking for it had been refused before the import', async t => {
      const world = await importWorld(t, open)
      await world.apply(live('e', 'a', {}), identify('user', 'device'), identify('a', 'device'))
      const before = await world.stored()
      const job = await world.createJob()
      await world.apply(anImportedEvent('$merge_dangerously', 'a', day, { alias: 'device' }, { importJobId: job.id }))
      await world.publish(job)
      await world.discard(job)
      assert.deepEqual(await world.stored(), before)
      assert.deepEqual(await world.notes(job), {})
    })

    it('the properties of both persons stay when a live event extended the merge', async t => {
      const { world, jobs } = await linked(t)
      await world.apply(identify('user', 'third'))
      await world.discard(jobs[0])
      const { ids, properties } = (await personWith(world, 'user'))!
      const { u, d } = JSON.parse(properties) as JsonObject
      assert.deepEqual([ids, u, d], ['device third user', 1, 1])
      assert.deepEqual(await world.notes(jobs[0]), { 'undo_left:merge_was_built_on': 1 })
    })

    it('live values of a restored person that stay with the survivor are noted', async t => {
      const { world, jobs } = await linked(t)
      await world.apply(live('e', 'device', { $set: { late: 1 } }, 201))
      await world.discard(jobs[0])
      assert.equal((await personWith(world, 'device'))?.ids, 'device')
      assert.match((await personWith(world, 'user'))!.properties, /late/)
      assert.deepEqual(await world.notes(jobs[0]), { 'undo_left:values_stay_with_survivor': 1 })
    })

    it('a chain of links longer than one batch is undone completely', async t => {
      const world = await importWorld(t, open)
      await world.apply(live('e', 'end', { $set: { k: 1 } }))
      const before = await world.stored()
      const job = await world.createJob()
      for (let step = 1; step < 300; step++)
        await world.apply({ ...link(job, `id${step}`, `id${step - 1}`), timestampMs: step })
      await world.apply(anImportedEvent('$merge_dangerously', 'end', day, { alias: 'id0' }, { importJobId: job.id }))
      await world.publish(job)
      assert.equal((await personWith(world, 'end'))?.ids.split(' ').length, 301)
      await world.discard(job)
      assert.deepEqual(await world.stored(), before)
      assert.deepEqual(await world.notes(job), {})
    })

    it('a person identified by the link is no longer identified, even when written to since', async t => {
      const world = await importWorld(t, open)
      await world.apply(live('e', 'user', {}))
      const job = await world.createJob()
      await world.apply(link(job, 'user', 'device'))
      await world.publish(job)
      await world.apply(live('e', 'user', { $set: { k: 1 } }, 201))
      await world.discard(job)
      const { ids, is_identified, created_at } = (await personWith(world, 'user'))!
      assert.deepEqual([ids, is_identified, created_at], ['user', 0, 200 * day])
    })
  })

  describe(`undoing the links of two import jobs on ${engine}`, () => {
    for (const [name, order] of [
      ['in order', [0, 1]],
      ['backwards', [1, 0]],
    ] as const) {
      const both = async ({ world, before, jobs }: Awaited<ReturnType<typeof linked>>) => {
        for (const place of order) await world.discard(jobs[place]!)
        assert.deepEqual(await withoutOrder(world), sortedProperties(before))
        await assertRowsHaveTheirPersons(world)
      }

      it(`undoing both jobs ${name} removes a link that both made`, async t => {
        const setting = await linked(t, 2)
        await setting.world.apply(link(setting.jobs[1]!, 'user', 'device'))
        await setting.world.publish(setting.jobs[1]!)
        await both(setting)
      })

      it(`undoing both jobs ${name} removes their links of one person to different devices`, async t => {
        const setting = await linked(t, 2)
        await setting.world.apply(link(setting.jobs[1]!, 'user', 'tablet'))
        await setting.world.publish(setting.jobs[1]!)
        await both(setting)
        assert.deepEqual(await setting.world.notes(setting.jobs[0]), {})
      })

      it(`undoing both jobs ${name} removes links that form a chain`, async t => {
        const setting = await linked(t, 2)
        await setting.world.apply(link(setting.jobs[1]!, 'device', 'tablet'))
        await setting.world.publish(setting.jobs[1]!)
        await both(setting)
      })

      it(`undoing both jobs ${name} removes a merge of a merge`, async t => {
        const setting = await linked(t, 2)
        const { world, jobs } = setting
        const merge = { alias: 'user' }
        await world.apply(
          anImportedEvent('e', 'boss', day, { $set: { b: 1 } }, { importJobId: jobs[1]!.id }),
          anImportedEvent('$merge_dangerously', 'boss', 2 * day, merge, { importJobId: jobs[1]!.id }),
        )
        await world.publish(jobs[1]!)
        await both(setting)
      })
    }

    it('undoing both jobs removes the links of one person to several others', async t => {
      const world = await importWorld(t, open)
      await world.apply(live('e', 'user', {}), live('e', 'tablet', { $set: { k: 1 } }))
      const before = await world.stored()
      const jobs = [await world.createJob(), await world.createJob()] as const
      for (const job of jobs) await world.apply(link(job, 'user', 'device'), link(job, 'user', 'tablet'))
      for (const job of jobs) await world.publish(job)
      for (const job of jobs) await world.discard(job)
      assert.deepEqual(await withoutOrder(world), sortedProperties(before))
    })

    for (const isLive of [false, true])
      it(`undoing one job keeps a person identified that ${isLive ? 'a live event' : 'the other job'} also identifies`, async t => {
        const world = await importWorld(t, open)
        await world.apply(live('e', 'user', {}), live('e', 'device', {}))
        await world.apply(live('$identify', 'known', { $anon_distinct_id: 'other' }))
        const before = await world.stored()
        const jobs = [await world.createJob(), await world.createJob()] as const
        await world.apply(link(jobs[0], 'user', 'device'))
        await world.publish(jobs[0])
        const refused = link(jobs[1], 'device', 'known')
        await world.apply(isLive ? live('$identify', 'device', { $anon_distinct_id: 'known' }, 201) : refused)
        await world.publish(jobs[1])
        await world.discard(jobs[0])
        const identified = async () =>
          (await world.stored()).persons.flatMap(({ ids, is_identified }) => (is_identified === 1 ? ids : []))
        assert.deepEqual((await identified()).toSorted(), ['device', 'known other'])
        await world.discard(jobs[1])
        if (!isLive) assert.deepEqual(await withoutOrder(world), sortedProperties(before))
      })
  })

  describe(`flag assignments of a person merged away by an import job on ${engine}`, () => {
    it('undoing the job restores the assignments, and the survivor keeps its own', async t => {
      const world = await importWorld(t, open)
      await world.apply(live('e', 'user', {}), live('e', 'device', {}))
      await world.assign('user', { beta: 'user-key' })
      await world.assign('device', { beta: 'device-key', gamma: 'device-key' })
      const before = await world.assignments()
      const job = await world.createJob()
      await world.apply(link(job, 'user', 'device'))
      await world.publish(job)
      assert.deepEqual(await world.assignments(), ['user beta=user-key', 'user gamma=device-key'])
      await world.discard(job)
      assert.deepEqual(await world.assignments(), before)
    })

    it('undoing the job restores the assignments across two merges of the job', async t => {
      const world = await importWorld(t, open)
      await world.apply(...['user', 'tablet', 'device'].map(id => live('e', id, {})))
      await world.assign('tablet', { beta: 'tablet-key' })
      await world.assign('device', { gamma: 'device-key' })
      const before = await world.assignments()
      const job = await world.createJob()
      await world.apply(link(job, 'tablet', 'device'))
      await world.apply({
        ...anImportedEvent('$merge_dangerously', 'user', 2 * day, { alias: 'tablet' }, { importJobId: job.id }),
      })
      await world.publish(job)
      assert.deepEqual(await world.assignments(), ['user beta=tablet-key', 'user gamma=device-key'])
      await world.discard(job)
      assert.deepEqual(await world.assignments(), before)
    })
  })
}

async function withoutOrder(world: ImportWorld) {
  return sortedProperties(await world.stored())
}

/** Restored keys come last in the stored text, so order is ignored. */
function sortedProperties(stored: Awaited<ReturnType<ImportWorld['stored']>>) {
  const persons = stored.persons.map(person => ({ ...person, properties: JSON.parse(person.properties) as JsonObject }))
  return { ...stored, persons }
}
