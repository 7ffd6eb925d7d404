// Imports without a job of their own, which belong to one of their day.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { anEvent, anImportedEvent } from '../../support/apply-events.ts'
import { aCapturedReject } from '../../support/captured-events.ts'
import { importWorld, type OpenImportState } from '../../support/import-world.ts'
import { day, personWith } from './random-acts.ts'

export function jobsOfDaysContract(engine: string, open: OpenImportState): void {
  describe(`imports without a job on ${engine}`, () => {
    const asImport = (name: string, distinctId: string, properties: JsonObject) =>
      anImportedEvent(name, distinctId, day, properties)

    it('belong to a job of their day, which is undone by what they wrote', async t => {
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

    it('that come after the undoing belong to another job of the same day, those from before go with it', async t => {
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

    it('have what was refused of them in the report of their day, with one line in the list of the project', async t => {
      const world = await importWorld(t, open)
      const refused = (importJobId: number) =>
        aCapturedReject({ lane: 'historical', historicalMigration: true, importJobId, reason: 'timestamp_invalid' })
      for (let count = 0; count < 3; count++) await world.refuse(refused(1))
      const [ofDay] = (await world.management.listImportJobs(1, { limit: 10, offset: 0 })).jobs
      assert.deepEqual(await world.notes(ofDay!), { timestamp_invalid: 3 })
      assert.deepEqual(
        [...world.events.rejected.values()].map(({ importJobId }) => importJobId),
        [1, 1, 1],
        'replayed later, they belong to that day',
      )
      const job = await world.createJob()
      await world.refuse(refused(job.id))
      assert.deepEqual(await world.notes(job), { timestamp_invalid: 1 })
      const [listed] = await world.management.listWarnings(1, { sinceMs: 0, sampleCountMax: 10 })
      assert.deepEqual(
        listed?.warnings.map(({ details }) => details.report).toSorted(),
        [ofDay!.id, job.id].map(id => `/api/projects/1/import_jobs/${id}/report/`),
      )
    })
  })
}
