// What undoing a published job leaves unchanged, and the notes about it.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { createRetentionClock } from '#services/worker/retention-clock.ts'
import { silentLogger } from '#telemetry/log.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { importWorld } from '../../support/world/import-world.ts'
import { assertRowsHaveTheirPersons, day, personWith } from './random-acts.ts'

export function leftBehindContract(engine: string, open: OpenSqlState): void {
  it(`an import job on ${engine} is undone although live events merged two of its persons since`, async t => {
    const world = await importWorld(t, open)
    const [job, other] = [await world.createJob(), await world.createJob()]
    const set = (key: string) => ({ $set: { [key]: 1 } })
    await world.apply(
      anImportedEvent('e', 'user', day, set('k'), { importJobId: job.id }),
      anImportedEvent('e', 'anon', day, set('l'), { importJobId: job.id }),
    )
    await world.publish(job)
    await world.apply(anEvent('$identify', 'user', { $anon_distinct_id: 'anon' }, { timestampMs: 200 * day }))
    await world.startPublishing(other)
    await world.discard(job)
    const { properties, ids } = (await personWith(world, 'user'))!
    assert.deepEqual([ids, 'k' in JSON.parse(properties), 'l' in JSON.parse(properties)], ['anon user', false, false])
    assert.equal((await world.management.findImportJob(other.id))?.state, 'published')
  })
  describe(`what undoing a job on ${engine} leaves, and what it removes`, () => {
    it('a property that live data wrote since stays, and is noted', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anEvent('e', 'a', { $set: { kept: 1 } }, { timestampMs: 200 * day }))
      await world.apply(
        anImportedEvent('e', 'a', day, { $set: { plan: 'old', city: 'Oslo' } }, { importJobId: job.id }),
      )
      await world.publish(job)
      await world.apply(anEvent('e', 'a', { $set: { plan: 'new' } }, { timestampMs: 201 * day }))
      await world.discard(job)
      const { properties } = (await personWith(world, 'a'))!
      const { kept, plan, city } = JSON.parse(properties) as JsonObject
      assert.deepEqual([kept, plan, city], [1, 'new', undefined])
      assert.deepEqual(await world.notes(job), { 'undo_left:property_was_written': 1 })
    })

    it('a merge that a live event extended since stays, and is noted', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(
        ...['user', 'device', 'third'].map(id => anEvent('e', id, { $set: { [id]: 1 } }, { timestampMs: 200 * day })),
      )
      await world.apply(
        anImportedEvent('$identify', 'user', day, { $anon_distinct_id: 'device' }, { importJobId: job.id }),
      )
      await world.publish(job)
      await world.apply(anEvent('$identify', 'user', { $anon_distinct_id: 'third' }, { timestampMs: 201 * day }))
      await world.discard(job)
      assert.equal((await personWith(world, 'user'))?.ids, 'device third user')
      assert.equal((await world.notes(job))['undo_left:merge_was_built_on'], 1)
      await assertRowsHaveTheirPersons(world)
    })

    it("a person that live events used since stays without the job's values, and is noted", async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anImportedEvent('e', 'new', day, { $set: { plan: 'old' } }, { importJobId: job.id }))
      await world.publish(job)
      await world.apply(anEvent('e', 'new', {}, { timestampMs: 201 * day }))
      await world.discard(job)
      assert.ok(!('plan' in (JSON.parse((await personWith(world, 'new'))!.properties) as JsonObject)))
      assert.equal((await world.notes(job))['undo_left:person_is_used'], 1)
    })

    it('a creation time that a live merge took over stays, and is noted', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      const [first, second] = [anEvent('e', 'user', {}, { timestampMs: 200 * day }), 201 * day]
      await world.apply(first, anEvent('e', 'device', {}, { timestampMs: second }))
      await world.apply(anImportedEvent('e', 'device', day, { $set: { k: 1 } }, { importJobId: job.id }))
      await world.publish(job)
      await world.apply(anEvent('$identify', 'user', { $anon_distinct_id: 'device' }, { timestampMs: 202 * day }))
      await world.discard(job)
      const { ids, created_at, properties } = (await personWith(world, 'user'))!
      assert.deepEqual([ids, created_at, 'k' in JSON.parse(properties)], ['device user', day, false])
      assert.deepEqual(await world.notes(job), { 'undo_left:created_at_was_merged': 1 })
    })

    it('a link that live data made to a person of the job stays, without a note', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anEvent('e', 'user', {}, { timestampMs: 200 * day }))
      await world.apply(anImportedEvent('e', 'device', 300 * day, { $set: { k: 1 } }, { importJobId: job.id }))
      await world.publish(job)
      await world.apply(anEvent('$identify', 'user', { $anon_distinct_id: 'device' }, { timestampMs: 202 * day }))
      await world.discard(job)
      const { ids, created_at, properties } = (await personWith(world, 'user'))!
      assert.deepEqual([ids, created_at, 'k' in JSON.parse(properties)], ['device user', 200 * day, false])
      assert.deepEqual(await world.notes(job), {})
    })

    it("a group that live events describe stays without the job's values, and is noted", async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      const group = { $group_type: 'org', $group_key: 'x' }
      await world.apply(
        anImportedEvent('$groupidentify', 'a', day, { ...group, $group_set: { tier: 1 } }, { importJobId: job.id }),
      )
      await world.publish(job)
      await world.apply(anEvent('$groupidentify', 'a', { ...group, $group_set: {} }, { timestampMs: 200 * day }))
      await world.discard(job)
      const { groups } = await world.stored()
      assert.deepEqual(
        groups.map(({ group_key, group_properties }) => [group_key, group_properties]),
        [['x', '{}']],
      )
      const { 'undo_left:group_is_used': used, 'undo_left:group_type_is_used': types } = await world.notes(job)
      assert.deepEqual([used, types], [1, 1])
    })

    it('a group type that only the job used is deleted, which the activity log says with the number of the job', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      const group = { $group_type: 'org', $group_key: 'x', $group_set: { tier: 1 } }
      await world.apply(anImportedEvent('$groupidentify', 'a', day, group, { importJobId: job.id }))
      await world.publish(job)
      await world.discard(job)
      assert.deepEqual((await world.stored()).groupTypes, [])
      const { results } = await world.management.listActivity({ projectId: 1, kinds: ['group_type'], limit: 9 })
      assert.deepEqual(
        results.map(({ activity, itemName, by }) => [activity, itemName, by?.label]),
        [['deleted', 'org', `Import job ${job.id}`]],
      )
    })

    it('a group property that the job removed is restored', async t => {
      const world = await importWorld(t, open)
      const [first, second] = [await world.createJob(), await world.createJob()]
      const group = { $group_type: 'org', $group_key: 'x' }
      const describe = (jobId: number, atMs: number, more: JsonObject) =>
        anImportedEvent('$groupidentify', 'a', atMs, { ...group, ...more }, { importJobId: jobId })
      await world.apply(describe(first.id, day, { $group_set: { tier: 1, seats: 5 } }))
      await world.publish(first)
      const before = (await world.stored()).groups
      await world.apply(describe(second.id, 2 * day, { $group_set: {}, $group_unset: ['tier'] }))
      await world.publish(second)
      assert.equal((await world.stored()).groups[0]!.group_properties, '{"seats":5}')
      await world.discard(second)
      assert.deepEqual((await world.stored()).groups, before)
    })

    it('a live first touch that the job had blocked takes effect', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anEvent('e', 'a', {}, { timestampMs: 200 * day }))
      await world.apply(anImportedEvent('e', 'a', day, { $set_once: { source: 'old' } }, { importJobId: job.id }))
      await world.publish(job)
      await world.apply(anEvent('e', 'a', { $set_once: { source: 'live' } }, { timestampMs: 201 * day }))
      await world.discard(job)
      const { properties, property_marks } = (await personWith(world, 'a'))!
      assert.equal((JSON.parse(properties) as JsonObject).source, 'live')
      assert.match(property_marks, new RegExp(String(201 * day)))
    })

    const browser = async (t: TestContext, ...values: string[]) => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(
        anEvent('e', 'user', {}, { timestampMs: 200 * day }),
        anEvent('e', 'device', { $browser: 'Chrome' }, { timestampMs: 200 * day }),
      )
      await world.apply(
        anImportedEvent('$identify', 'user', day, { $anon_distinct_id: 'device' }, { importJobId: job.id }),
      )
      await world.publish(job)
      for (const [index, $browser] of values.entries()) {
        world.clock.advance(1_000)
        await world.apply(anEvent('e', 'user', { $browser }, { timestampMs: 201 * day + index }))
      }
      await world.discard(job)
      const user = JSON.parse((await personWith(world, 'user'))!.properties) as JsonObject
      return { shown: [user.$browser, user.$initial_browser], notes: await world.notes(job) }
    }

    it('a live value that was not written because the merge had brought another takes effect after the undo', async t => {
      assert.deepEqual(await browser(t, 'Firefox', 'Safari'), { shown: ['Firefox', 'Firefox'], notes: {} })
    })

    it('the merged value stays, with a note, when a live event set it again after a change that was not written', async t => {
      assert.deepEqual(await browser(t, 'Firefox', 'Chrome'), {
        shown: ['Chrome', 'Firefox'],
        notes: { 'undo_left:property_was_written': 1 },
      })
    })

    it('a live first touch that the job had blocked takes effect even after many other writes', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anEvent('e', 'a', {}, { timestampMs: 200 * day }))
      await world.apply(anImportedEvent('e', 'a', day, { $set_once: { source: 'old' } }, { importJobId: job.id }))
      await world.publish(job)
      const others = Array.from({ length: 150 }, (_, index) =>
        anEvent('e', 'a', { $set_once: { other: index } }, { timestampMs: 201 * day + index }),
      )
      await world.apply(...others, anEvent('e', 'a', { $set_once: { source: 'live' } }, { timestampMs: 202 * day }))
      await world.discard(job)
      assert.equal((JSON.parse((await personWith(world, 'a'))!.properties) as JsonObject).source, 'live')
    })

    it('a live link that was refused because of the job is noted as missing', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(
        anImportedEvent('$identify', 'user', day, { $anon_distinct_id: 'device' }, { importJobId: job.id }),
      )
      await world.publish(job)
      await world.apply(
        anEvent('e', 'other', {}, { timestampMs: 200 * day }),
        anEvent('$identify', 'other', { $anon_distinct_id: 'device' }, { timestampMs: 200 * day }),
      )
      await world.discard(job)
      assert.deepEqual(await world.notes(job), { 'undo_left:link_was_refused': 1 })
    })

    it('a job published more than 30 days ago is final and cannot be undone', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }, { importJobId: job.id }))
      await world.publish(job)
      world.clock.advance(31 * day)
      assert.deepEqual(await world.startDiscarding(job), { ok: false, error: 'final' })
      await world.work().workNow(new AbortController().signal)
      assert.equal((await world.management.findImportJob(job.id))?.finalAtMs, world.clock.nowMs())
    })

    it('a final job stays final, even when the clock is set back', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }, { importJobId: job.id }))
      await world.publish(job)
      world.clock.advance(31 * day)
      await world.work().workNow(new AbortController().signal)
      world.clock.advance(-31 * day)
      assert.deepEqual(await world.startDiscarding(job), { ok: false, error: 'final' })
      // A request that read the job before the deletion must not start either.
      const change = { state: 'discarding', step: 'draining', updatedAtMs: 0 } as const
      assert.equal(await world.management.updateImportJob(job.id, change, { states: ['published'] }, null), null)
    })

    it('a job that is old only by an untrusted clock can still be undone', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }, { importJobId: job.id }))
      await world.publish(job)
      const monotonic = { nowMs: 0 }
      const options = { clock: world.clock, store: world.management, monotonicNowMs: () => monotonic.nowMs }
      const believed = { atMs: world.clock.nowMs(), aheadMs: 0, stoodMs: 0 }
      await world.management.saveTrustedTime(believed)
      const retentionClock = createRetentionClock({ ...options, logger: silentLogger() })
      world.clock.advance(31 * day)
      await retentionClock.lookNow()
      await world.work({ retentionClock }).workNow(new AbortController().signal)
      world.clock.advance(-31 * day)
      await world.discard(job)
      assert.deepEqual(JSON.parse((await personWith(world, 'a'))?.properties ?? '{}'), {})
      assert.deepEqual(await world.notes(job), {})
    })
  })
}
