// Jobs that share events, persons or links.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import fc from 'fast-check'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import {
  acts,
  applyAll,
  assertRowsHaveTheirPersons,
  day,
  imported,
  inWorlds,
  isAboutUndoing,
  live,
  personWith,
} from './random-acts.ts'

/** @param numRuns random runs per property. */
export function twoJobsContract(engine: string, open: OpenSqlState, numRuns: number): void {
  describe(`two jobs with the same events on ${engine}`, () => {
    it('shared events are stored once, and stay until both jobs are discarded', async t => {
      const world = await importWorld(t, open)
      const [first, second] = [await world.createJob(), await world.createJob()]
      const event = anImportedEvent('e', 'a', day, { $set: { plan: 'old' } }, { importJobId: first.id })
      await world.apply(event)
      await world.apply({ ...event, importJobId: second.id })
      await world.publish(first)
      await world.publish(second)
      assert.equal(world.events.rows.size, 1)
      await world.discard(first)
      assert.equal(world.events.rows.size, 1)
      assert.equal((await personWith(world, 'a'))?.ids, 'a')
      await world.discard(second)
      assert.equal(world.events.rows.size, 0)
    })

    it('discarding a job forgets the time that it gave a generated link', async t => {
      const world = await importWorld(t, open)
      const [first, second] = [await world.createJob(), await world.createJob()]
      const uuid = '5b0fb7a1-0000-5000-8000-000000000001'
      const link = (importJobId: number, timestampMs: number) =>
        anImportedEvent('$identify', 'user', timestampMs, { $anon_distinct_id: 'device' }, { importJobId, uuid })
      await world.apply(link(first.id, 9 * day))
      await world.discard(first)
      await world.apply(link(second.id, 2 * day))
      assert.deepEqual(
        world.events.pending.map(({ timestampMs }) => timestampMs),
        [2 * day],
      )
    })

    it('a generated link keeps the time that the first job gave it', async t => {
      const world = await importWorld(t, open)
      const [first, second] = [await world.createJob(), await world.createJob()]
      const link = (importJobId: number, timestampMs: number) =>
        anImportedEvent(
          '$identify',
          'user',
          timestampMs,
          { $anon_distinct_id: 'device' },
          {
            importJobId,
            uuid: '5b0fb7a1-0000-5000-8000-000000000001',
          },
        )
      await world.apply(link(first.id, 9 * day))
      await world.apply(link(second.id, 2 * day))
      await world.publish(first)
      await world.publish(second)
      assert.deepEqual(
        [...world.events.rows.values()].map(({ timestampMs }) => timestampMs),
        [9 * day],
      )
    })
  })

  describe(`two jobs that describe the same group on ${engine}`, () => {
    const uuids = { a: '5b0fb7a1-0000-5000-8000-00000000000a', b: '5b0fb7a1-0000-5000-8000-00000000000b' }
    const group = (plan: 'a' | 'b', atDay: number) =>
      anImportedEvent(
        '$groupidentify',
        'user',
        atDay * day,
        { $group_type: 'org', $group_key: 'acme', $group_set: { plan } },
        { uuid: uuids[plan] },
      )
    const planOf = async (world: ImportWorld) => {
      const [row] = (await world.stored()).groups
      return (JSON.parse(String(row?.group_properties ?? '{}')) as JsonObject).plan
    }

    // The group was "a" on day 1, "b" on day 2 and "a" again on day 3. An importer sends only the last event of each
    // value.
    const histories: readonly (readonly [what: string, first: CapturedEvent[], second: CapturedEvent[]])[] = [
      ['when the second covers the same range', [group('b', 2), group('a', 3)], [group('b', 2), group('a', 3)]],
      ['when the second covers a longer range', [group('a', 1)], [group('b', 2), group('a', 3)]],
      ['when the second covers later days', [group('a', 1), group('b', 2)], [group('a', 3)]],
      ['when the second covers earlier days', [group('a', 3)], [group('a', 1), group('b', 2)]],
    ]
    for (const [what, ...jobs] of histories)
      it(`publishing both leaves the latest value of the group ${what}`, async t => {
        const world = await importWorld(t, open)
        const made = [await world.createJob(), await world.createJob()] as const
        for (const [index, events] of jobs.entries())
          await world.apply(...events.map(event => ({ ...event, importJobId: made[index]!.id })))
        for (const job of made) await world.publish(job)
        assert.equal(await planOf(world), 'a')
        const rows = [...world.events.rows.values()].map(({ uuid }) => uuid)
        assert.equal(rows.length, new Set(rows).size, 'each event is stored once')
        await world.discard(made[1])
        await world.discard(made[0])
        assert.equal(await planOf(world), undefined)
      })
  })

  describe(`two jobs that write to the same persons and groups on ${engine}`, () => {
    it('undoing both jobs leaves nothing, in either order', async () => {
      await fc.assert(
        fc.asyncProperty(
          acts,
          acts,
          acts,
          fc.boolean(),
          inWorlds(open, async (newWorld, before, ofFirst, ofSecond, isBackwards) => {
            const world = await newWorld()
            await applyAll(world, before.map(live))
            const stored = inOrder(await world.stored())
            const jobs = [await world.createJob(), await world.createJob()] as const
            await applyAll(world, ofFirst.map(imported(jobs[0].id)))
            await applyAll(world, ofSecond.map(imported(jobs[1].id)))
            for (const job of jobs) await world.publish(job)
            for (const job of isBackwards ? jobs.toReversed() : jobs) await world.discard(job)
            assert.deepEqual(inOrder(await world.stored()), stored)
            await assertRowsHaveTheirPersons(world)
            if (isBackwards)
              for (const job of jobs)
                assert.deepEqual(
                  Object.keys(await world.notes(job)).filter(isAboutUndoing),
                  [],
                  'undoing in reverse order leaves no notes',
                )
          }),
        ),
        { numRuns },
      )
    })

    const both = async (t: TestContext, first: JsonObject, second: JsonObject, liveProperties: JsonObject = {}) => {
      const world = await importWorld(t, open)
      await world.apply(anEvent('e', 'a', liveProperties, { timestampMs: 200 * day }))
      const jobs = [await world.createJob(), await world.createJob()] as const
      await world.apply(anImportedEvent('e', 'a', 2 * day, first, { importJobId: jobs[0].id }))
      await world.apply(anImportedEvent('e', 'a', 3 * day, second, { importJobId: jobs[1].id }))
      for (const job of jobs) await world.publish(job)
      await world.discard(jobs[0])
      const left = (await personWith(world, 'a'))!
      const notes = await world.notes(jobs[0])
      await world.discard(jobs[1])
      const { properties, property_marks, created_at } = (await personWith(world, 'a'))!
      return { left: JSON.parse(left.properties) as JsonObject, notes, properties, property_marks, created_at }
    }

    it("undoing the first job keeps the second job's value, and undoing both removes it", async t => {
      const { left, notes, properties, created_at } = await both(t, { $set: { k: 1 } }, { $set: { k: 2 } })
      assert.equal(left.k, 2)
      assert.deepEqual(notes, { 'undo_left:property_was_written': 1 })
      assert.ok(!('k' in (JSON.parse(properties) as JsonObject)))
      assert.equal(created_at, 200 * day)
    })

    it('undoing the first job restores shadowed values of the second, and undoing the second removes them', async t => {
      const world = await importWorld(t, open)
      const group = { $group_type: 'org', $group_key: 'x' }
      await world.apply(anEvent('e', 'a', {}, { timestampMs: 200 * day }))
      await world.apply(anEvent('$groupidentify', 'a', { ...group, $group_set: { live: 1 } }))
      const before = inOrder(await world.stored())
      const jobs = [await world.createJob(), await world.createJob()] as const
      const of = ({ id }: { id: number }, atMs: number, k: number) => [
        anImportedEvent('e', 'a', atMs, { $set: { k }, $set_once: { once: k } }, { importJobId: id }),
        anImportedEvent('$groupidentify', 'a', atMs, { ...group, $group_set: { k } }, { importJobId: id }),
      ]
      await world.apply(...of(jobs[0], 5 * day, 1))
      await world.apply(...of(jobs[1], 3 * day, 2))
      for (const job of jobs) await world.publish(job)
      await world.discard(jobs[0])
      const { k, once } = JSON.parse((await personWith(world, 'a'))!.properties) as JsonObject
      const [{ group_properties }] = (await world.stored()).groups as [{ group_properties: string }]
      assert.deepEqual([k, once, JSON.parse(group_properties)], [2, 2, { live: 1, k: 2 }])
      await world.discard(jobs[1])
      assert.deepEqual(inOrder(await world.stored()), before)
    })

    it("undoing two of three jobs restores the third job's shadowed value, in either order", async t => {
      for (const order of [
        [0, 2],
        [2, 0],
      ] as const) {
        const world = await importWorld(t, open)
        await world.apply(anEvent('e', 'a', {}, { timestampMs: 200 * day }))
        const before = inOrder(await world.stored())
        const jobs = [await world.createJob(), await world.createJob(), await world.createJob()] as const
        for (const [place, atMs] of [5 * day, 3 * day, 7 * day].entries())
          await world.apply(anImportedEvent('e', 'a', atMs, { $set: { k: place } }, { importJobId: jobs[place]!.id }))
        for (const job of jobs) await world.publish(job)
        for (const place of order) await world.discard(jobs[place])
        assert.equal((JSON.parse((await personWith(world, 'a'))!.properties) as JsonObject).k, 1)
        await world.discard(jobs[1])
        assert.deepEqual(inOrder(await world.stored()), before)
      }
    })

    it('undoing the first job restores a live first touch that came before the second job, but not a later one', async t => {
      const world = await importWorld(t, open)
      await world.apply(anEvent('e', 'a', {}, { timestampMs: 200 * day }))
      const jobs = [await world.createJob(), await world.createJob()] as const
      for (const [place, atMs] of [5 * day, 3 * day].entries())
        await world.apply(
          anImportedEvent('e', 'a', atMs, { $set: { k: place, l: place } }, { importJobId: jobs[place]!.id }),
        )
      await world.publish(jobs[0])
      await world.apply(anEvent('e', 'a', { $set_once: { k: 'live' } }, { timestampMs: 201 * day }))
      world.clock.advance(10_000)
      await world.publish(jobs[1])
      world.clock.advance(10_000)
      await world.apply(anEvent('e', 'a', { $set_once: { l: 'live' } }, { timestampMs: 202 * day }))
      await world.discard(jobs[0])
      const { k, l } = JSON.parse((await personWith(world, 'a'))!.properties) as JsonObject
      assert.deepEqual([k, l], ['live', 1])
    })

    it('undoing the first job notes a value of the second that no longer fits into the person', async t => {
      const world = await importWorld(t, open)
      const text = 'x'.repeat(400_000)
      await world.apply(anEvent('e', 'a', {}, { timestampMs: 200 * day }))
      const jobs = [await world.createJob(), await world.createJob()] as const
      for (const [place, k] of [1, text].entries())
        await world.apply(
          anImportedEvent('e', 'a', (5 - place) * day, { $set: { k } }, { importJobId: jobs[place]!.id }),
        )
      for (const job of jobs) await world.publish(job)
      await world.apply(anEvent('e', 'a', { $set: { l: text } }, { timestampMs: 201 * day }))
      await world.discard(jobs[0])
      assert.ok(!Object.hasOwn(JSON.parse((await personWith(world, 'a'))!.properties), 'k'))
      assert.deepEqual(await world.notes(jobs[0]), { 'undo_left:outranked_value_is_missing': 1 })
    })

    it('undoing both jobs leaves no tombstones', async t => {
      const { properties, property_marks } = await both(t, { $set: { k: 1 } }, { $unset: ['k'] }, { $set: { live: 1 } })
      assert.ok(!('k' in (JSON.parse(properties) as JsonObject)))
      assert.equal(property_marks, '[]')
    })
  })
}

/** Restored keys come last in the stored text, so order is ignored. */
function inOrder({ persons, groups, ...stored }: Awaited<ReturnType<ImportWorld['stored']>>) {
  const ordered = (text: unknown) => Object.entries(JSON.parse(String(text)) as JsonObject).toSorted()
  return {
    ...stored,
    persons: persons.map(({ properties, ...person }) => ({ ...person, properties: ordered(properties) })),
    groups: groups.map(({ group_properties, ...group }) => ({ ...group, properties: ordered(group_properties) })),
  }
}
