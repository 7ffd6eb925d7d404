// Rebuilding persons from their events, and splitting them.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '#core/json.ts'
import { emptyReport, type RebuildRequest } from '#core/persons/person-repair.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import { QueryTooLargeError } from '#ports/port-error.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { aChange, anEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { workWithCrashes } from './finish-with-crashes.ts'
import {
  type Act,
  acts,
  applyAll,
  assertRowsHaveTheirPersons,
  day,
  ids,
  inWorlds,
  live,
  personWith,
  publishActs,
} from './random-acts.ts'

const rebuildAll: RebuildRequest = { kind: 'rebuild', applies: true, persons: null }
const isLink = ({ name, id, properties }: Act) => name === '$identify' && properties.$anon_distinct_id !== id

/** @param numRuns random runs per property. */
export function repairedPersonsContract(engine: string, open: OpenSqlState, numRuns: number): void {
  const check = (run: (newWorld: () => Promise<ImportWorld>, ...lists: [Act[], Act[], Act[]]) => Promise<void>) =>
    fc.assert(fc.asyncProperty(acts, acts, acts, inWorlds(open, run)), { numRuns })

  describe(`rebuilding persons on ${engine}`, () => {
    it('changes nothing if the persons already match their events', () =>
      check(async (newWorld, before, during, after) => {
        const world = await newWorld()
        await applyAll(world, before.map(live))
        const job = await publishActs(world, during)
        await applyAll(
          world,
          after.map((act, index) => live(act, 1_000 + index)),
        )
        const assertUnchanged = async () => {
          const stored = await world.stored()
          const report = await world.repair(rebuildAll)
          assert.deepEqual(await world.stored(), stored)
          assert.deepEqual({ ...report, idCount: 0 }, emptyReport)
        }
        await assertUnchanged()
        await world.discard(job)
        if ((await world.notes(job))['undo_left:history_is_incomplete'] === undefined) await assertUnchanged()
      }))

    it('reports what would change, and then restores damaged persons', () =>
      check(async (newWorld, before, _, after) => {
        const world = await newWorld()
        await applyAll(world, [...before, ...after].map(live))
        const stored = await world.stored()
        await world.query(`UPDATE person SET properties = '{"damaged":1}', created_at = 1 RETURNING id`)
        const damaged = await world.stored()
        const preview = await world.repair({ ...rebuildAll, applies: false })
        assert.deepEqual(await world.stored(), damaged)
        const report = await world.repair(rebuildAll)
        assert.deepEqual(await world.stored(), stored)
        assert.deepEqual(report, preview)
        assert.equal(report!.changedCount, stored.persons.length)
        assert.deepEqual({ ...(await world.repair(rebuildAll)), idCount: 0 }, emptyReport)
      }))

    it('restores a lost person by its distinct id, and separates ids that no event links', async t => {
      const world = await importWorld(t, open)
      const events = ['a', 'b', 'c'].map((id, index) =>
        anEvent('e', id, { $set: { k: id } }, { timestampMs: day + index }),
      )
      await world.apply(...events)
      const stored = await world.stored()
      const idOf = (id: string) => `(SELECT id FROM person WHERE uuid = '${personUuid(1, id)}')`
      await world.query(
        `UPDATE person_distinct_id SET person_id = ${idOf('a')} WHERE distinct_id = 'b' RETURNING version`,
      )
      await world.query(`DELETE FROM person_distinct_id WHERE distinct_id = 'c' RETURNING version`)
      await world.query(
        `DELETE FROM person WHERE uuid IN ('${personUuid(1, 'b')}', '${personUuid(1, 'c')}') RETURNING id`,
      )
      const report = await world.repair({
        ...rebuildAll,
        persons: { uuids: [personUuid(1, 'a')], distinctIds: ['c'] },
      })
      assert.deepEqual(await world.stored(), stored)
      assert.deepEqual(report, {
        ...{ idCount: 3, changedCount: 0, createdCount: 2, removedCount: 0, movedIdCount: 2, unreadableIdCount: 0 },
        samples: ['b', 'c'].map(id => ({
          uuid: personUuid(1, id),
          change: 'created',
          keys: ['k', '$creator_event_uuid'],
          distinctIds: [id],
        })),
      })
      await assertRowsHaveTheirPersons(world)
    })

    it('reaches the same result after a crash at any write', () =>
      check(async (newWorld, before, _, after) => {
        const world = await newWorld()
        await applyAll(world, [...before, ...after].map(live))
        const stored = await world.stored()
        await world.query(`UPDATE person SET properties = '{}', created_at = 1 RETURNING id`)
        await repairWithCrashes(world, rebuildAll, before.length)
        assert.deepEqual(await world.stored(), stored)
      }))
  })

  it(`erased persons on ${engine} do not come back when persons are rebuilt, and new persons with their ids stay`, async t => {
    for (const deletesEvents of [false, true]) {
      const world = await importWorld(t, open)
      const { management } = world
      await world.apply(
        anEvent('e', 'a', { $set: { email: 'a@example.com' } }, { timestampMs: day }),
        anEvent('$identify', 'a', { $anon_distinct_id: 'b' }, { timestampMs: day + 1 }),
        anEvent('e', 'c', { $set: { k: 1 } }, { timestampMs: day + 2 }),
      )
      const change = { by: { id: null, label: 'Test' }, atMs: 0 }
      const personIds = await management.findPersonIds(1, { distinctIds: ['a'] })
      const terms = { keepsPerson: false, deletesEvents, deletesRecordings: false, logId: 'log', endOffsets: {} }
      await management.erasePersons({ projectId: 1, personIds, ...terms }, change)
      const request = { ...rebuildAll, persons: { uuids: [], distinctIds: ['a', 'b', 'c'] } }
      for (const id of ['', 'b']) {
        if (id !== '') await world.apply(anEvent('e', id, { $set: { k: 2 } }, { timestampMs: day + 3 }))
        const stored = await world.stored()
        assert.deepEqual({ ...(await world.repair(request)), idCount: 0 }, emptyReport)
        assert.deepEqual(await world.stored(), stored)
      }
    }
  })

  describe(`splitting a person on ${engine}`, () => {
    it('gives each distinct id a person that results from the id’s own events without the links', () =>
      check(async (newWorld, before, during, after) => {
        const world = await newWorld()
        await applyAll(world, before.map(live))
        const job = await publishActs(world, during)
        const earlier = await world.stored()
        const person = findMerged(earlier)
        if (person === undefined) return
        const split = person.ids.split(' ')
        const mainId = split.at(-1)!
        await repairWithCrashes(world, { kind: 'split', uuid: person.uuid, mainId }, before.length)
        const { persons } = await world.stored()
        const others = earlier.persons.filter(({ uuid }) => uuid !== person.uuid)
        assert.deepEqual(
          persons.filter(({ ids }) => !split.includes(ids)),
          others,
        )
        assert.deepEqual(new Set(persons.map(({ ids }) => ids)), new Set([...others.map(each => each.ids), ...split]))
        assert.equal((await personWith(world, mainId))!.uuid, person.uuid)
        await assertRowsHaveTheirPersons(world)

        const unlinked = await newWorld()
        const withoutLink = (act: Act): Act => {
          const { $anon_distinct_id: otherId, ...properties } = act.properties
          return isLink(act) && [act.id, otherId].some(id => split.includes(id as string))
            ? { ...act, properties }
            : act
        }
        await applyAll(unlinked, before.map(withoutLink).map(live))
        const again = await publishActs(unlinked, during.map(withoutLink))
        const known = (await unlinked.stored()).persons.flatMap(({ ids }) => (split.includes(ids) ? ids : []))
        const assertSame = async () => {
          for (const id of known) assert.deepEqual(await propertiesOf(world, id), await propertiesOf(unlinked, id), id)
        }
        await assertSame()
        for (const id of split) {
          const [alone, expected] = [(await personWith(world, id))!, await personWith(unlinked, id)]
          assert.equal(alone.created_at, expected?.created_at ?? person.created_at, id)
          if (expected === undefined) assert.equal(alone.properties, '{}')
          if (expected?.is_identified === 1) assert.equal(alone.is_identified, 1)
        }

        // It stays so, and later events count for their own id.
        const separate = await world.stored()
        await world.repair(rebuildAll)
        assert.deepEqual(await world.stored(), separate)
        const later = after.filter(act => !isLink(act)).map((act, index) => live(act, 1_000 + index))
        await applyAll(world, later)
        await applyAll(unlinked, later)
        await assertSame()
        await world.discard(job)
        await unlinked.discard(again)
        await assertSame()
        assert.equal((await world.notes(job))['undo_left:history_is_incomplete'], undefined)
        assert.deepEqual({ ...(await world.repair(rebuildAll)), idCount: 0 }, emptyReport)
      }))

    it('lets later links merge the ids again, and a second split separates them again', () =>
      check(async (newWorld, before, _, after) => {
        const world = await newWorld()
        await applyAll(world, before.map(live))
        const person = findMerged(await world.stored())
        if (person === undefined) return
        const split = person.ids.split(' ')
        await world.repair({ kind: 'split', uuid: person.uuid, mainId: split[0]! })
        const merge = split
          .slice(1)
          .map((alias, index) =>
            anEvent('$merge_dangerously', split[0]!, { alias }, { timestampMs: 300 * day + index }),
          )
        await world.apply(...merge)
        assert.deepEqual((await personWith(world, split[0]!))!.ids, person.ids)
        await applyAll(
          world,
          after.map((act, index) => live(act, 1_000 + index)),
        )
        const stored = await world.stored()
        assert.deepEqual({ ...(await world.repair(rebuildAll)), idCount: 0 }, emptyReport)
        assert.deepEqual(await world.stored(), stored)
        const again = findMerged(stored)!
        await world.repair({ kind: 'split', uuid: again.uuid, mainId: again.ids.split(' ').at(-1)! })
        const separate = await world.stored()
        assert.ok(again.ids.split(' ').every(id => separate.persons.some(each => each.ids === id)))
        await assertRowsHaveTheirPersons(world)
        assert.deepEqual({ ...(await world.repair(rebuildAll)), idCount: 0 }, emptyReport)
      }))

    it('leaves the assignments, and values that no event explains, with the person of the main distinct id', async t => {
      const world = await importWorld(t, open)
      await world.apply(
        anEvent('e', 'a', { $set: { k: 'a' } }, { timestampMs: day }),
        anEvent('e', 'b', { $set: { l: 'b' } }, { timestampMs: day + 1 }),
      )
      await world.apply(anEvent('$identify', 'a', { $anon_distinct_id: 'b' }, { timestampMs: day + 2 }))
      await world.query(`UPDATE person SET properties = '{"k":"a","l":"b","m":"left"}' RETURNING id`)
      await world.assign('a', { beta: 'b' })
      const { uuid } = (await personWith(world, 'a'))!
      await world.repair({ kind: 'split', uuid, mainId: 'b' })
      assert.deepEqual(
        [await propertiesOf(world, 'a'), await propertiesOf(world, 'b')],
        [{ k: 'a' }, { l: 'b', m: 'left' }],
      )
      assert.deepEqual(await world.assignments(), ['b beta=b'])
      // The uuid that derives from the id is the main one's.
      const [a, b] = [(await personWith(world, 'a'))!, (await personWith(world, 'b'))!]
      assert.equal(b.uuid, personUuid(1, 'a'))
      assert.notEqual(a.uuid, b.uuid)
    })

    it('separates the ids even if their events cannot be read, or are deleted', async t => {
      for (const events of ['unreadable', 'deleted'] as const) {
        const world = await importWorld(t, open)
        await world.apply(
          anEvent('e', 'a', { $set: { k: 'a' } }, { timestampMs: day }),
          anEvent('$identify', 'a', { $anon_distinct_id: 'b', $set: { l: 1 } }, { timestampMs: day + 2 }),
        )
        const before = (await personWith(world, 'a'))!
        if (events === 'deleted') world.events.copies.clear()
        if (events === 'unreadable')
          world.events.readHistory = () =>
            Promise.reject(new QueryTooLargeError('event-store', 'full', new Error('too many')))
        await world.repair({ kind: 'split', uuid: before.uuid, mainId: 'a' })
        const [a, b] = [(await personWith(world, 'a'))!, (await personWith(world, 'b'))!]
        assert.deepEqual([a.uuid, a.properties, b.properties], [before.uuid, before.properties, '{}'])
        assert.equal(b.created_at, before.created_at)
      }
    })

    it('makes a chunk that was loaded before the split link its ids with the separate persons', async t => {
      const world = await importWorld(t, open)
      await world.apply(anEvent('$identify', 'a', { $anon_distinct_id: 'b', $set: { k: 1 } }, { timestampMs: day }))
      const { uuid } = (await personWith(world, 'a'))!
      const afterLoad = async () => void (await world.repair({ kind: 'split', uuid, mainId: 'a' }))
      const link = anEvent('$identify', 'b', { $anon_distinct_id: 'c' }, { timestampMs: day + 1 })
      await world.applyWith({ afterLoad }, link)
      assert.deepEqual((await world.stored()).persons.map(({ ids }) => ids).sort(), ['a', 'b c'])
      await assertRowsHaveTheirPersons(world)
      assert.deepEqual({ ...(await world.repair(rebuildAll)), idCount: 0 }, emptyReport)
    })

    it('is postponed to the next start if the worker stops while it reads links', async t => {
      const world = await importWorld(t, open)
      await world.apply(anEvent('$identify', 'a', { $anon_distinct_id: 'b' }, { timestampMs: day }))
      const stored = await world.stored()
      const stop = new AbortController()
      const { findLinks } = world.events
      world.events.findLinks = (...asked) => {
        stop.abort()
        return findLinks.apply(world.events, asked)
      }
      const request = { kind: 'split', uuid: stored.persons[0]!.uuid, mainId: 'a' } as const
      assert.ok(await world.management.requestRepair(1, request, 1, aChange()))
      await world.work().workNow(stop.signal)
      assert.deepEqual(await world.stored(), stored)
      await world.work().workNow(new AbortController().signal)
      assert.deepEqual((await world.stored()).persons.map(({ ids }) => ids).sort(), ['a', 'b'])
    })

    it('does not change a person that was merged, split or erased since the request', async t => {
      const world = await importWorld(t, open)
      await world.apply(anEvent('$identify', 'a', { $anon_distinct_id: 'b' }, { timestampMs: day }))
      const stored = await world.stored()
      await world.repair({ kind: 'split', uuid: personUuid(1, 'nobody'), mainId: 'a' })
      await world.repair({ kind: 'split', uuid: stored.persons[0]!.uuid, mainId: 'c' })
      assert.deepEqual(await world.stored(), stored)
    })
  })
}

async function repairWithCrashes(
  world: ImportWorld,
  request: Parameters<ImportWorld['repair']>[0],
  first: number,
): Promise<void> {
  assert.ok(await world.management.requestRepair(1, request, 1, { by: { id: null, label: 'Test' }, atMs: 0 }))
  await workWithCrashes(world, first, async () => (await world.management.listOpenRepairs()).length === 0)
}

function findMerged({ persons }: Awaited<ReturnType<ImportWorld['stored']>>) {
  return persons.find(each => each.ids.includes(' ') && each.ids.split(' ').every(id => ids.includes(id)))
}

/** Without the uuid of the event that created the person, which differs between worlds. */
async function propertiesOf(world: ImportWorld, id: string): Promise<JsonObject> {
  const { $creator_event_uuid: _, ...properties } = JSON.parse((await personWith(world, id))?.properties ?? '{}')
  return properties
}
