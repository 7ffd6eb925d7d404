// The options of an import job, and its behaviour after a failure, after its project was deleted, and once it is old.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ImportOptions } from '#core/imports/import-job.ts'
import type { JsonObject } from '#core/json.ts'
import { PortError } from '#ports/port-error.ts'
import { createRetentionClock } from '#services/worker/retention-clock.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { aChange, anEvent, anImportedEvent } from '../../support/values.ts'
import { withMethods } from '../../support/with-methods.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { day, personWith } from './random-acts.ts'

export function jobLifeContract(engine: string, open: OpenSqlState): void {
  describe(`the options of an import job on ${engine}`, () => {
    const liveThenImport = async (t: TestContext, options: Partial<ImportOptions>) => {
      const world = await importWorld(t, open)
      const job = await world.createJob(options)
      await world.apply(
        anEvent('e', 'a', { $set: { plan: 'live' }, $set_once: { source: 'late' } }, { timestampMs: 200 * day }),
      )
      const stored = await world.stored()
      const properties = { $set: { plan: 'imported' }, $set_once: { source: 'early' } }
      await world.apply(anImportedEvent('e', 'a', day, properties, { importJobId: job.id }))
      await world.publish(job)
      const { plan, source } = JSON.parse((await personWith(world, 'a'))!.properties) as JsonObject
      await world.discard(job)
      assert.deepEqual(await world.stored(), stored)
      return [plan, source]
    }

    it('by default, the import does not overwrite live values', async t => {
      assert.deepEqual(await liveThenImport(t, {}), ['live', 'late'])
    })

    it('overwritesPersons lets the import overwrite live values', async t => {
      assert.deepEqual(await liveThenImport(t, { overwritesPersons: true }), ['imported', 'late'])
    })

    it('backdatesFirstTouch lets an earlier imported event replace a live first touch', async t => {
      assert.deepEqual(await liveThenImport(t, { backdatesFirstTouch: true }), ['live', 'early'])
    })
  })
  it(`a failed import job on ${engine} still accepts events`, async t => {
    const world = await importWorld(t, open)
    const job = await world.createJob()
    const at = { updatedAtMs: world.clock.nowMs() }
    await world.management.updateImportJob(job.id, { state: 'failed', ...at }, { states: ['planned'] }, null)
    await world.apply(anImportedEvent('e', 'a', day, {}, { importJobId: job.id }))
    assert.equal(world.events.pending.length, 1)
  })
  it(`an import job on ${engine} is discarded when its project is deleted`, async t => {
    const world = await importWorld(t, open)
    const job = await world.createJob()
    await world.apply(anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }, { importJobId: job.id }))
    await world.startPublishing(job)
    await world.management.deleteProject(1, aChange())
    world.clock.advance(10_000)
    for (let turn = 0; turn < 2; turn++) await world.work().workNow(new AbortController().signal)
    assert.equal((await world.management.findImportJob(job.id))?.state, 'discarded')
    assert.deepEqual([(await world.stored()).staged, world.events.pending.length], [0, 0])
  })

  it(`a discarded import job on ${engine} is forgotten once the limit of discarded jobs is exceeded`, async t => {
    const world = await importWorld(t, open)
    const jobs = {
      ...world.management,
      deleteDiscardedJobs: (id: number) => world.management.deleteDiscardedJobs(id, 1),
    }
    const made = []
    for (let count = 0; count < 4; count++) made.push(await world.createJob())
    const [published, discarded, undone, last] = made
    for (const job of [published!, undone!]) await world.publish(job)
    for (const job of [discarded!, undone!, last!]) {
      await world.startDiscarding(job)
      world.clock.advance(10_000)
      await world.work({ jobs }).workNow(new AbortController().signal)
    }
    const { jobs: left } = await world.management.listImportJobs(1, { limit: 9, offset: 0 })
    assert.deepEqual(
      left.map(({ id, state }) => [id, state]),
      [
        [last!.id, 'discarded'],
        [published!.id, 'published'],
      ],
    )
  })

  it(`an import job on ${engine} waits while another job of its project is being published`, async t => {
    const world = await importWorld(t, open)
    const [first, second] = [await world.createJob(), await world.createJob()]
    const set = (plan: string, importJobId: number) =>
      anImportedEvent('e', 'a', day, { $set: { plan } }, { importJobId })
    await world.apply(set('first', first.id), set('second', second.id))
    await world.startPublishing(first)
    await world.startPublishing(second)
    world.clock.advance(10_000)
    const publishJob = () => Promise.reject(new PortError('event-store', 'unavailable'))
    const events = withMethods<ImportWorld['events']>(world.events, { publishJob })
    for (let turn = 0; turn < 2; turn++)
      await assert.rejects(world.work({ events }).workNow(new AbortController().signal), PortError)
    const steps = async () =>
      Promise.all([first, second].map(async ({ id }) => (await world.management.findImportJob(id))?.step))
    assert.deepEqual(await steps(), ['rows', 'draining'])
    for (let turn = 0; turn < 2; turn++) await world.work().workNow(new AbortController().signal)
    assert.deepEqual(await steps(), [null, null])
  })

  describe(`an old import job on ${engine}`, () => {
    it('a job published more than 30 days ago is final and cannot be undone', async t => {
      const world = await importWorld(t, open)
      const job = await world.publishEvents(anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }))
      world.clock.advance(31 * day)
      assert.deepEqual(await world.startDiscarding(job), { ok: false, error: 'final' })
      await world.work().workNow(new AbortController().signal)
      assert.equal((await world.management.findImportJob(job.id))?.finalAtMs, world.clock.nowMs())
    })

    it('a final job stays final, even when the clock is set back', async t => {
      const world = await importWorld(t, open)
      const job = await world.publishEvents(anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }))
      world.clock.advance(31 * day)
      await world.work().workNow(new AbortController().signal)
      world.clock.advance(-31 * day)
      assert.deepEqual(await world.startDiscarding(job), { ok: false, error: 'final' })
      // A request that read the job before the deletion must not start either.
      const change = { state: 'discarding', step: 'draining', updatedAtMs: 0 } as const
      assert.equal(await world.management.updateImportJob(job.id, change, { states: ['published'] }, null), null)
    })

    it('a job that seems old only according to an untrusted clock can still be undone', async t => {
      const world = await importWorld(t, open)
      const job = await world.publishEvents(anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }))
      const monotonic = { nowMs: 0 }
      const options = { clock: world.clock, store: world.management, monotonicNowMs: () => monotonic.nowMs }
      const believed = { atMs: world.clock.nowMs(), aheadMs: 0, stoodMs: 0 }
      await world.management.saveTrustedTime(believed)
      const retentionClock = createRetentionClock({ ...options, logger: createSilentLogger() })
      world.clock.advance(31 * day)
      await retentionClock.checkNow()
      await world.work({ retentionClock }).workNow(new AbortController().signal)
      world.clock.advance(-31 * day)
      await world.discard(job)
      assert.deepEqual(JSON.parse((await personWith(world, 'a'))?.properties ?? '{}'), {})
      assert.deepEqual(await world.notes(job), {})
    })
  })
}
