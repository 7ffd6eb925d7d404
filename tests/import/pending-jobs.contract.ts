// The state contract for what happens beside a pending import job: deleted group types and projects, late events and lost
// rows.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { ImportJob } from '#core/imports/import-job.ts'
import { QueryTooLargeError } from '#ports/port-error.ts'
import type { ImportWorkDeps } from '#services/imports/job-batch.ts'
import { loadWhole, type OpenSqlState } from '../support/state.ts'
import { aChange, anEvent, anImportedEvent } from '../support/values.ts'
import { withMethods } from '../support/with-methods.ts'
import { type ImportWorld, importWorld } from '../support/world/import-world.ts'

const day = 86_400_000

export function pendingJobsContract(engine: string, open: OpenSqlState): void {
  describe(`group types of a pending import job on ${engine}`, () => {
    const inOrg = { $groups: { org: 'x' } }

    it('cannot be deleted until the job is published or discarded, even if its events only mention the types', async t => {
      const world = await importWorld(t, open)
      await world.apply(anEvent('e', 'a', inOrg, { timestampMs: 200 * day }))
      const [job, other] = [await world.createJob(), await world.createJob()]
      await world.apply(anImportedEvent('e', 'a', day, inOrg, { importJobId: job.id }))
      await world.apply(anImportedEvent('e', 'a', day, inOrg, { importJobId: other.id }))
      const refused = { ok: false, error: 'used_by_import' }
      assert.deepEqual(await world.management.startDeletingGroupType(1, 0, aChange()), refused)
      await world.publish(job)
      assert.deepEqual(await world.management.startDeletingGroupType(1, 0, aChange()), refused)
      await world.discard(other)
      assert.ok((await world.management.startDeletingGroupType(1, 0, aChange())).ok)
    })

    it('cannot be deleted when another job added them in the same chunk', async t => {
      const world = await importWorld(t, open)
      const [first, second] = [await world.createJob(), await world.createJob()]
      await world.apply(...[first, second].map(({ id }) => anImportedEvent('e', 'a', day, inOrg, { importJobId: id })))
      await world.publish(first)
      assert.deepEqual(await world.management.startDeletingGroupType(1, 0, aChange()), {
        ok: false,
        error: 'used_by_import',
      })
    })

    it('stay when the job that added them is discarded while another pending job mentions them', async t => {
      const world = await importWorld(t, open)
      const [first, second] = [await world.createJob(), await world.createJob()]
      await world.apply(anImportedEvent('e', 'a', day, inOrg, { importJobId: first.id }))
      await world.apply(anImportedEvent('e', 'a', day, inOrg, { importJobId: second.id }))
      await world.discard(first)
      assert.deepEqual(
        (await world.management.listGroupTypes(1)).map(({ name }) => name),
        ['org'],
      )
    })

    for (const isPublished of [false, true])
      it(`are removed with the last job that mentions them, whichever ${isPublished ? 'published' : 'pending'} job added them`, async t => {
        const world = await importWorld(t, open)
        const jobs = [await world.createJob(), await world.createJob(), await world.createJob()] as const
        for (const job of jobs) await world.apply(anImportedEvent('e', 'a', day, inOrg, { importJobId: job.id }))
        if (isPublished) for (const place of [1, 0]) await world.publish(jobs[place]!)
        for (const [place, job] of jobs.entries()) {
          await world.discard(job)
          assert.equal((await world.management.listGroupTypes(1)).length, place === 2 ? 0 : 1)
        }
      })
  })

  describe(`group types after the undo of an import job on ${engine}`, () => {
    it('are deleted if only that job used them, and the activity log shows the job’s number', async t => {
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

    it('stay, with a note, if another event describes a group of the type or mentions one', async t => {
      const ofOrg = { $group_type: 'org', $group_key: 'x', $group_set: {} }
      for (const [name, properties] of [
        ['$groupidentify', ofOrg],
        ['e', { $groups: { org: 'x' } }],
      ] as const) {
        const world = await importWorld(t, open)
        const job = await world.createJob()
        await world.apply(anImportedEvent('$groupidentify', 'a', day, ofOrg, { importJobId: job.id }))
        await world.publish(job)
        await world.apply(anEvent(name, 'a', properties, { timestampMs: 200 * day }))
        await world.discard(job)
        assert.equal((await world.stored()).groupTypes.length, 1)
        assert.deepEqual(await world.notes(job), { 'undo_left:group_type_is_used': 1 })
      }
    })
  })

  describe(`events for a closed import job on ${engine}`, () => {
    it('are counted and listed with the job, and become rejects only if it was published', async t => {
      const world = await importWorld(t, open)
      const [published, discarded] = [await world.createJob(), await world.createJob()]
      await world.publish(published)
      await world.discard(discarded)
      for (const job of [published, discarded])
        for (const id of ['a', 'b']) await world.apply(anImportedEvent('e', id, day, {}, { importJobId: job.id }))
      const [note, ...others] = await world.management.listImportNotes(published.id)
      assert.deepEqual([note?.reason, note?.count, others], ['import_job_closed', 2, []])
      assert.deepEqual(
        note?.samples.map(({ event, distinctId }) => [event, distinctId]),
        [
          ['e', 'a'],
          ['e', 'b'],
        ],
      )
      assert.deepEqual(await world.notes(discarded), { import_job_discarded: 2 })
      assert.equal(world.events.rejected.size, 2)
    })
  })

  describe(`the rows of an import job on ${engine}`, () => {
    const twoEvents = async (t: TestContext) => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      const event = anImportedEvent('e', 'a', day, {}, { importJobId: job.id })
      await world.apply(event, event, anImportedEvent('e', 'b', day, {}, { importJobId: job.id }))
      return { world, job, event }
    }

    it('are counted when stored, and publishing makes no note if the event store still has all of them', async t => {
      const { world, job } = await twoEvents(t)
      assert.equal((await world.management.findImportJob(job.id))?.storedRows, 2)
      await world.publish(job)
      assert.deepEqual(await world.notes(job), {})
    })

    it('are noted once as missing if the event store has lost some of them before publishing', async t => {
      const { world, job } = await twoEvents(t)
      world.events.pending.pop()
      await world.publish(job)
      const [note] = await world.management.listImportNotes(job.id)
      assert.deepEqual(
        [note?.reason, note?.count, note?.samples],
        ['rows_fewer_than_stored', 1, [{ stored: 2, found: 1 }]],
      )
    })

    it('are not noted as missing if some were sent twice and the client has verified the number of rows', async t => {
      for (const [verified, reasons] of [
        [2, []],
        [3, ['rows_fewer_than_stored']],
      ] as const) {
        const { world, job, event } = await twoEvents(t)
        await world.apply(event)
        assert.equal((await world.management.findImportJob(job.id))?.storedRows, 3)
        const verification = { progress: { verified_rows: verified }, updatedAtMs: 1 }
        assert.ok(
          await world.management.updateImportJob(job.id, verification, { states: ['planned', 'sending'] }, null),
        )
        await world.publish(job)
        assert.deepEqual(Object.keys(await world.notes(job)), reasons)
      }
    })

    it('are published with a note if there are more than the event store can count', async t => {
      const { world, job } = await twoEvents(t)
      const tooLarge = () => Promise.reject(new QueryTooLargeError('event-store', 'full', new Error('memory')))
      const events = withMethods<ImportWorkDeps['events']>(world.events, { countPendingRows: tooLarge })
      await world.publish(job, { events })
      assert.deepEqual(await world.notes(job), { rows_not_counted: 1 })
      assert.equal(world.events.rows.size, 2)
    })

    it('are not counted if the event store refuses them', async t => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      world.events.refuses = ({ distinctId }) => distinctId === 'b'
      for (const id of ['a', 'b']) await world.apply(anImportedEvent('e', id, day, {}, { importJobId: job.id }))
      assert.equal((await world.management.findImportJob(job.id))?.storedRows, 1)
    })
  })

  describe(`import jobs of a deleted project on ${engine}`, () => {
    const events = [
      anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }),
      anImportedEvent('$identify', 'a', day, { $anon_distinct_id: 'b' }),
      anImportedEvent('$groupidentify', 'a', day, { $group_type: 'org', $group_key: 'x', $group_set: { tier: 1 } }),
    ]
    const prepare = async (t: TestContext) => {
      const world = await importWorld(t, open)
      const job = await world.createJob()
      await world.apply(...events.map(event => ({ ...event, importJobId: job.id })))
      return { world, job }
    }
    /** Deletes the project when the state has made `writeCount` more writes. */
    const deletedAfter = (world: ImportWorld, writeCount: number): Partial<ImportWorkDeps> => {
      let left = writeCount
      return {
        state: {
          ...world.chunks,
          commitChunk: async (...args) => {
            if (left-- === 0) await world.management.deleteProject(1, aChange())
            return world.chunks.commitChunk(...args)
          },
        },
      }
    }
    const work = async (world: ImportWorld, over?: Partial<ImportWorkDeps>) => {
      for (let turn = 0; turn < 4; turn++) {
        world.clock.advance(10_000)
        await world.work(over).workNow(new AbortController().signal)
      }
    }
    const assertNothingLeft = async (world: ImportWorld, job: ImportJob) => {
      const { staged, links } = await world.stored()
      const groupTypes = await world.management.listNamedGroupTypes(job.id)
      assert.deepEqual([staged, links, groupTypes, world.events.pending.length], [0, 0, [], 0])
    }

    it('are discarded by the worker without a request', async t => {
      const { world, job } = await prepare(t)
      await world.management.deleteProject(1, aChange())
      await work(world)
      assert.equal((await world.management.findImportJob(job.id))?.state, 'discarded')
      await assertNothingLeft(world, job)
    })

    for (const writeCount of [0, 1, 2])
      it(`leave nothing if the project is deleted after ${writeCount} writes of publishing`, async t => {
        const { world, job } = await prepare(t)
        await world.startPublishing(job)
        await work(world, deletedAfter(world, writeCount))
        // The last write may have completed the publishing.
        const { state } = (await world.management.findImportJob(job.id))!
        assert.ok(state === 'discarded' || (writeCount === 2 && state === 'published'), state)
        await assertNothingLeft(world, job)
      })

    for (const writeCount of [0, 1, 2])
      it(`are discarded if the project is deleted after ${writeCount} writes of undoing`, async t => {
        const { world, job } = await prepare(t)
        await world.publish(job)
        await world.startDiscarding(job)
        await work(world, deletedAfter(world, writeCount))
        assert.equal((await world.management.findImportJob(job.id))?.state, 'discarded')
        await assertNothingLeft(world, job)
      })

    it('are final if they were published before', async t => {
      const { world, job } = await prepare(t)
      await world.publish(job)
      await world.management.deleteProject(1, aChange())
      await work(world)
      assert.equal((await world.management.findImportJob(job.id))?.state, 'published')
      await assertNothingLeft(world, job)
    })
  })

  it(`the worker on ${engine} learns whether an import job looks up locations of recorded addresses`, async t => {
    const world = await importWorld(t, open)
    const jobs = [await world.createJob(), await world.createJob({ looksUpGeoip: true })]
    const importJobIds = jobs.map(({ id }) => id)
    const loaded = await loadWhole(world.chunks, { distinctIds: [], groups: [], projectIds: [1], importJobIds })
    assert.deepEqual(
      loaded.importJobs?.map(({ looksUpGeoip }) => looksUpGeoip),
      [false, true],
    )
  })
}
