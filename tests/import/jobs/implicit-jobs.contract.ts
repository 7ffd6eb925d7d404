// Imports without a job belong to the implicit job of their day.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { aCapturedReject, anEvent, anImportedEvent } from '../../support/values.ts'
import { importWorld } from '../../support/world/import-world.ts'
import { day, personWith } from './random-acts.ts'

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
      const { groupTypes: _stay, ...stored } = await world.stored()
      assert.deepEqual({ ...stored, groupTypes: [] }, before)
      assert.equal(world.events.rows.size, 1)
    })

    it('after undoing the implicit job, new imports of the day get a new job, and those sent before the undo are dropped', async t => {
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
