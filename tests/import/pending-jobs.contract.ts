// The contract of a state for what happens beside a pending import job: group types that are deleted, and events that come
// too late.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anEvent, anImportedEvent } from '../support/apply-events.ts'
import { importWorld, type OpenImportState } from '../support/import-world.ts'

const day = 86_400_000

export function pendingJobsContract(engine: string, open: OpenImportState): void {
  describe(`group types of a pending import job on ${engine}`, () => {
    const inOrg = { $groups: { org: 'x' } }

    it('are not deleted until it is published or discarded, also when its events only name them', async t => {
      const world = await importWorld(t, open)
      await world.apply(anEvent('e', 'a', inOrg, { timestampMs: 200 * day }))
      const [job, other] = [await world.createJob(), await world.createJob()]
      await world.apply(anImportedEvent('e', 'a', day, inOrg, { importJobId: job.id }))
      await world.apply(anImportedEvent('e', 'a', day, inOrg, { importJobId: other.id }))
      const refused = { ok: false, error: 'used_by_import' }
      assert.deepEqual(await world.management.startDeletingGroupType(1, 0), refused)
      await world.publish(job)
      assert.deepEqual(await world.management.startDeletingGroupType(1, 0), refused)
      await world.discard(other)
      assert.ok((await world.management.startDeletingGroupType(1, 0)).ok)
    })

    it('stay when the job that added them is discarded while another pending one names them', async t => {
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
  })

  describe(`events for a closed import job on ${engine}`, () => {
    it('are counted and shown with the job, rejected when it was published', async t => {
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
}
