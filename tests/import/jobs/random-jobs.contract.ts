// Random imported and live events, compared with the expected result, and interruptions between any two writes.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '#core/json.ts'
import { filteredProperties } from '#core/processing/properties/mapped-properties.ts'
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
  isAboutUndoing,
  isKept,
  live,
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

    it('a closed job refuses events: rejected when published, dropped when discarded', async t => {
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
    for (const first of [0, 1, 2]) {
      const world = await importWorld(t, open)
      await world.apply(anEvent('e', 'end', { $set: { k: 1 } }, { timestampMs: 200 * day }))
      await world.assign('end', { beta: 'end' })
      const [stored, assignments] = [await world.stored(), await world.assignments()]
      const job = await world.createJob()
      const batch = Array.from({ length: 300 }, (_, index) => [
        anImportedEvent('e', `user${index}`, day + index, { $set: { k: index } }, { importJobId: job.id }),
        anImportedEvent('$merge_dangerously', 'end', day + index, { alias: `device${index}` }, { importJobId: job.id }),
      ])
      await world.apply(...batch.flat())
      assert.ok((await world.startPublishing(job)).ok)
      await finishWithCrashes(world, job.id, 'published', first)
      await assertRowsHaveTheirPersons(world)
      await world.apply(anEvent('e', 'user1', { $set: { k: 'live' } }, { timestampMs: 201 * day }))
      assert.ok((await world.startDiscarding(job)).ok)
      await finishWithCrashes(world, job.id, 'discarded', first)
      const { persons, ...rest } = await world.stored()
      assert.deepEqual({ ...rest, persons: persons.filter(({ ids }) => ids !== 'user1') }, stored)
      assert.deepEqual(await world.assignments(), assignments)
      assert.deepEqual(await world.notes(job), {
        'undo_left:person_is_used': 1,
        'undo_left:property_was_written': 1,
      })
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
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        await world.publish(job)
        assert.equal((await world.stored()).links, 0)
        await assertRowsHaveTheirPersons(world)
      }))

    it('undoing restores the previous state byte for byte', () =>
      check(async (world, before, during) => {
        await applyAll(world, before.map(live))
        const stored = await world.stored()
        const rows = world.personOfRows()
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        await world.publish(job)
        await world.discard(job)
        assert.deepEqual(await world.stored(), stored)
        assert.deepEqual(world.personOfRows(), rows)
        assert.deepEqual(Object.keys(await world.notes(job)).filter(isAboutUndoing), [])
      }))

    it('publishing and undoing leave live values unchanged', () =>
      check(async (world, before, during, after) => {
        await applyAll(world, before.map(live))
        const job = await world.createJob()
        await applyAll(world, during.map(imported(job.id)))
        await world.publish(job)
        const lateActs = after.filter(({ name }) => name === 'e')
        const late = lateActs.map((act, index) => live(act, 1_000 + index))
        await applyAll(world, late)
        await world.discard(job)
        await assertRowsHaveTheirPersons(world)
        // A split leaves later writes with the person that they were written to.
        const last = new Map(
          lateActs.flatMap(({ id, properties }) =>
            Object.entries((properties.$set ?? {}) as JsonObject)
              .filter(([key]) => !filteredProperties.has(key))
              .map(([key, value]) => [`${id} ${key}`, value]),
          ),
        )
        const kept = new Set(
          (await world.stored()).persons.flatMap(({ properties }) =>
            Object.entries(JSON.parse(properties) as JsonObject).map(([key, value]) => `${key} ${value}`),
          ),
        )
        const finalKeys = [...last.keys()].filter(name => isLastOfPerson(name, lateActs))
        for (const name of finalKeys) assert.ok(kept.has(`${name.split(' ')[1]} ${last.get(name)}`), name)
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

/** Whether the key was written by no other id that ever shared a person with this id. `name`: id and key. */
function isLastOfPerson(name: string, acts: readonly Act[]): boolean {
  const [, key] = name.split(' ') as [string, string]
  return acts
    .filter(act => Object.hasOwn((act.properties.$set ?? {}) as JsonObject, key))
    .every(act => `${act.id} ${key}` === name)
}
