// Random imported and live events, compared with the expected result, and interruptions between any two writes.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { finishWithCrashes } from './finish-with-crashes.ts'
import {
  type Act,
  acts,
  applyAll,
  assertRowsHaveTheirPersons,
  day,
  imported,
  inWorlds,
  isKept,
  live,
  publishActs,
  withoutMarks,
} from './random-acts.ts'

type Lists = readonly [before: readonly Act[], during: readonly Act[], after: readonly Act[]]
type Property = (world: ImportWorld, ...rest: [...Lists, newWorld: () => Promise<ImportWorld>]) => Promise<void>

/** @param numRuns random runs per property. */
export function randomJobsContract(engine: string, open: OpenSqlState, numRuns: number): void {
  async function check(property: Property): Promise<void> {
    const run = inWorlds(open, async (newWorld, ...lists: [...Lists]) => property(await newWorld(), ...lists, newWorld))
    await fc.assert(fc.asyncProperty(acts, acts, acts, run), { numRuns })
  }

  describe(`a pending import job on ${engine}`, () => {
    it('a pending job changes nothing in its project, and discarding it leaves nothing', () =>
      check(async (world, before, during) => {
        await applyAll(world, before.map(live))
        const stored = await world.stored()
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        const { persons, groups } = await world.stored()
        assert.deepEqual({ persons, groups }, { persons: stored.persons, groups: stored.groups })
        assert.equal(world.events.rows.size, before.filter(isKept).length)
        await world.discard(job)
        assert.deepEqual(await world.stored(), stored)
        assert.equal(world.events.pending.length, 0)
      }))

    it('a closed job takes no more events: they become rejects if it is published, and are dropped if it is discarded', async t => {
      const world = await importWorld(t, open)
      const [published, discarded] = [await world.createJob(), await world.createJob()]
      await world.publish(published)
      await world.discard(discarded)
      await world.apply(
        anImportedEvent('e', 'a', day, {}, { importJobId: published.id }),
        anImportedEvent('e', 'a', day, {}, { importJobId: discarded.id }),
      )
      assert.deepEqual(
        [...world.events.rejected.values()].map(({ reason }) => reason),
        ['import_job_closed'],
      )
      assert.deepEqual(
        [world.events.rows.size, world.events.pending.length, (await world.stored()).persons],
        [0, 0, []],
      )
    })
  })

  it(`an import job of several batches on ${engine} continues after a crash between any two of them`, async t => {
    for (const [first, userCount] of [300, 2_100, 300].entries()) {
      const world = await importWorld(t, open)
      const lost = anEvent('e', 'lost', { $set: { k: 1 } }, { timestampMs: 200 * day })
      await world.apply(anEvent('e', 'end', { $set: { k: 1 } }, { timestampMs: 200 * day }), lost)
      await world.assign('end', { beta: 'end' })
      const [stored, assignments] = [await world.stored(), await world.assignments()]
      const job = await world.createJob()
      const [ofJob, setsK] = [{ importJobId: job.id }, (k: number) => ({ $set: { k } })]
      await world.apply(
        anImportedEvent('e', 'lost', day, { $set: { l: 1 } }, ofJob),
        anImportedEvent('$groupidentify', 'end', day, { $group_type: 'org', $group_key: 'x' }, ofJob),
        ...Array.from({ length: userCount }, (_, index) =>
          anImportedEvent('e', `user${index}`, day + index, setsK(index), ofJob),
        ),
        ...Array.from({ length: 300 }, (_, index) =>
          anImportedEvent('$merge_dangerously', 'end', day + index, { alias: `device${index}` }, ofJob),
        ),
      )
      assert.ok((await world.startPublishing(job)).ok)
      await finishWithCrashes(world, job.id, 'published', first)
      await assertRowsHaveTheirPersons(world)
      world.forget(lost)
      assert.ok((await world.startDiscarding(job)).ok)
      await finishWithCrashes(world, job.id, 'discarded', first)
      const { persons, ...rest } = await world.stored()
      const others = (list: typeof persons) => list.filter(({ ids }) => ids !== 'lost')
      assert.deepEqual({ ...rest, persons: others(persons) }, { ...stored, persons: others(stored.persons) })
      assert.deepEqual(await world.assignments(), assignments)
      assert.deepEqual(await world.notes(job), { 'undo_left:history_is_incomplete': 1 })
    }
  })

  describe(`a published import job on ${engine}`, () => {
    it('publishing makes the same persons and groups as importing the events without a job', () =>
      check(async (world, before, during, _after, newWorld) => {
        const ofLive = before.map(live)
        await applyAll(world, ofLive)
        const job = await world.createJob()
        const events = during.filter(({ name }) => name !== '$identify').map(imported(job.id))
        await applyAll(world, events)
        await world.publish(job)
        const { persons, groups } = await withoutMarks(world)
        const direct = await newWorld()
        await applyAll(direct, ofLive)
        await applyAll(
          direct,
          events.map(event => ({ ...event, importJobId: 1 })),
        )
        const atOnce = await withoutMarks(direct)
        assert.deepEqual({ persons, groups }, { persons: atOnce.persons, groups: atOnce.groups })
        assert.equal((await world.stored()).staged, 0)
      }))

    it('publishing resolves all links, and every row has the person of its id', () =>
      check(async (world, before, during) => {
        await applyAll(world, before.map(live))
        await publishActs(world, during)
        assert.equal((await world.stored()).links, 0)
        await assertRowsHaveTheirPersons(world)
      }))

    it('after a crash at any write the job continues, and reaches the same result', () =>
      check(async (world, before, during, { length: first }) => {
        await applyAll(world, before.map(live))
        const stored = await world.stored()
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        assert.ok((await world.startPublishing(job)).ok)
        await finishWithCrashes(world, job.id, 'published', first)
        await assertRowsHaveTheirPersons(world)
        assert.ok((await world.startDiscarding(job)).ok)
        await finishWithCrashes(world, job.id, 'discarded', first)
        assert.deepEqual(await world.stored(), stored)
      }))
  })
}
