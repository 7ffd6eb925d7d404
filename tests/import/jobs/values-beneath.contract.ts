// Undoing an import restores values and creation times of other imports that it had shadowed, even after its person was
// merged with another.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { day, personWith, withoutMarks } from './random-acts.ts'

export function valuesBeneathContract(engine: string, open: OpenSqlState): void {
  const group = { $group_type: 'org', $group_key: 'x' }
  const publishOf = async (world: ImportWorld, name: string, id: string, atDay: number, properties: JsonObject) => {
    const job = await world.createJob()
    await world.apply(anImportedEvent(name, id, atDay * day, properties, { importJobId: job.id }))
    await world.publish(job)
    return job
  }
  const valuesOf = async (world: ImportWorld, id: string) =>
    JSON.parse((await personWith(world, id))!.properties) as JsonObject

  describe(`creation times lowered by several jobs on ${engine}`, () => {
    for (const order of [
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [2, 1, 0],
      [2, 0, 1],
    ])
      it(`undoing the jobs in the order ${order.join(', ')} always leaves the earliest remaining time`, async t => {
        const world = await importWorld(t, open)
        await world.apply(anEvent('e', 'a', {}, { timestampMs: 200 * day }))
        await world.apply(
          anEvent('$groupidentify', 'a', { ...group, $group_set: { l: 1 } }, { timestampMs: 200 * day }),
        )
        const before = await withoutMarks(world)
        const days = [2, 4, 3]
        const jobs = []
        for (const atDay of days) {
          const job = await world.createJob()
          await world.apply(
            anImportedEvent('e', 'a', atDay * day, { $set: { [atDay]: 1 } }, { importJobId: job.id }),
            anImportedEvent('$groupidentify', 'a', atDay * day, { ...group, $group_set: {} }, { importJobId: job.id }),
          )
          await world.publish(job)
          jobs.push(job)
        }
        const left = new Set(days)
        for (const place of order) {
          await world.discard(jobs[place]!)
          left.delete(days[place]!)
          const firstMs = Math.min(200, ...left) * day
          const { persons, groups } = await withoutMarks(world)
          assert.deepEqual([persons[0]?.created_at, Number(groups[0]?.created_at)], [firstMs, firstMs])
        }
        assert.deepEqual(await withoutMarks(world), before)
      })

    it('undoing a merge restores the creation time that another job gave the hidden person, until that job is undone', async t => {
      const world = await importWorld(t, open)
      for (const id of ['anon', 'user']) await world.apply(anEvent('e', id, {}, { timestampMs: 200 * day }))
      const before = await withoutMarks(world)
      const jobs = [
        await publishOf(world, '$identify', 'user', 1, { $anon_distinct_id: 'anon' }),
        await publishOf(world, 'e', 'anon', 8, {}),
      ]
      await world.discard(jobs[0]!)
      assert.equal((await personWith(world, 'anon'))?.created_at, 8 * day)
      assert.equal((await personWith(world, 'user'))?.created_at, 200 * day)
      assert.deepEqual(await world.notes(jobs[0]!), {})
      await world.discard(jobs[1]!)
      assert.deepEqual(await withoutMarks(world), before)
    })
  })

  describe(`undoing a job on ${engine} after a live event removed the property`, () => {
    const liveUnset = (id: string) => anEvent('$set', id, { $unset: ['k'] }, { timestampMs: 201 * day })

    it('the property stays removed although the job had removed it first', async t => {
      for (const isUnset of [false, true]) {
        const world = await importWorld(t, open)
        await publishOf(world, 'e', 'user', 1, { $set: { k: 1 } })
        const job = await publishOf(world, 'e', 'user', 2, { $unset: ['k'] })
        if (isUnset) await world.apply(liveUnset('user'))
        await world.discard(job)
        assert.equal((await valuesOf(world, 'user')).k, isUnset ? undefined : 1)
      }
    })

    it('the property stays removed unless a later import set it again', async t => {
      const world = await importWorld(t, open)
      const job = await publishOf(world, 'e', 'user', 9, { $set: { k: 2 } })
      await publishOf(world, 'e', 'user', 1, { $set: { k: 1 } })
      await world.apply(liveUnset('user'))
      const later = await publishOf(world, 'e', 'user', 3, { $set: { k: 3 } })
      assert.equal((await valuesOf(world, 'user')).k, 3)
      await world.discard(job)
      assert.equal((await valuesOf(world, 'user')).k, 3)
      await world.discard(later)
      assert.equal((await valuesOf(world, 'user')).k, undefined)
    })

    it("the property stays removed although a merge had brought the job's value", async t => {
      const world = await importWorld(t, open)
      await publishOf(world, 'e', 'user', 1, { $set: { k: 1 } })
      const job = await publishOf(world, 'e', 'anon', 5, { $set_once: { k: 2 } })
      await world.apply(liveUnset('user'))
      await world.apply(anEvent('$identify', 'user', { $anon_distinct_id: 'anon' }, { timestampMs: 202 * day }))
      assert.equal((await valuesOf(world, 'user')).k, 2)
      await world.discard(job)
      assert.equal((await valuesOf(world, 'user')).k, undefined)
    })

    it('a value set by the removing event itself takes effect only if nothing else had set the property', async t => {
      const both = [{ $set_once: { k: 3 } }, { $set: { k: 3 } }]
      for (const adds of both)
        for (const [earlier, left] of [
          [null, 3],
          [{ $set: { k: 1 } }, undefined],
        ] as const) {
          const world = await importWorld(t, open)
          await world.apply(anEvent('e', 'user', {}, { timestampMs: 200 * day }))
          const job = await publishOf(world, 'e', 'user', 9, { $set: { k: 2 } })
          if (earlier !== null) await publishOf(world, 'e', 'user', 1, earlier)
          await world.apply(anEvent('$set', 'user', { ...adds, $unset: ['k'] }, { timestampMs: 201 * day }))
          assert.equal((await valuesOf(world, 'user')).k, undefined)
          await world.discard(job)
          assert.equal((await valuesOf(world, 'user')).k, left)
          assert.deepEqual(await world.notes(job), {})
        }
    })

    it('the property stays removed, with a note, when an import of the same day may have set it earlier', async t => {
      const world = await importWorld(t, open)
      await publishOf(world, 'e', 'user', 1, { $set: { k: 1 } })
      const job = await publishOf(world, 'e', 'user', 5, { $unset: ['k'] })
      const withoutJob = anImportedEvent('e', 'user', 3 * day, { $set: { k: 2 } })
      await world.apply({ ...withoutJob, capturedAtMs: world.clock.nowMs() })
      world.clock.advance(1_000)
      await world.apply(liveUnset('user'))
      await world.discard(job)
      assert.equal((await valuesOf(world, 'user')).k, undefined)
      assert.deepEqual(await world.notes(job), { 'undo_left:property_was_written': 1 })
    })

    for (const isSetAgain of [false, true])
      it(`the property stays removed on a person restored by undoing its merge${isSetAgain ? ', whatever the survivor has' : ''}`, async t => {
        const world = await importWorld(t, open)
        await world.apply(anEvent('e', 'anon', { $set: { k: 1 } }, { timestampMs: 200 * day }))
        await world.apply(anEvent('e', 'user', {}, { timestampMs: 200 * day }))
        const job = await publishOf(world, '$identify', 'user', 1, { $anon_distinct_id: 'anon' })
        await world.apply(liveUnset('anon'))
        if (isSetAgain) await world.apply(anEvent('$set', 'user', { $set: { k: 2 } }, { timestampMs: 202 * day }))
        await world.discard(job)
        assert.equal((await valuesOf(world, 'anon')).k, undefined)
        assert.equal((await valuesOf(world, 'user')).k, isSetAgain ? 2 : undefined)
        const ofUser = isSetAgain ? ['undo_left:property_was_written'] : []
        assert.deepEqual(Object.keys(await world.notes(job)), [...ofUser, 'undo_left:values_stay_with_survivor'])
      })
  })

  describe(`undoing a job on ${engine} after a live event removed the property on a person merged since`, () => {
    const link = (world: ImportWorld, id: string) =>
      world.apply(anEvent('$identify', 'user', { $anon_distinct_id: id }, { timestampMs: 202 * day }))
    /**
     * The user's remaining value, after anon was merged into the user following these acts, and whether it is noted.
     */
    const undone = async (t: TestContext, acts: (world: ImportWorld) => Promise<void>) => {
      const world = await importWorld(t, open)
      for (const id of ['user', 'anon', 'other']) await world.apply(anEvent('e', id, {}, { timestampMs: 200 * day }))
      const job = await publishOf(world, 'e', 'user', 9, { $set: { k: 9 } })
      await acts(world)
      await link(world, 'anon')
      assert.equal((await valuesOf(world, 'user')).k, 9)
      await world.discard(job)
      const { k } = await valuesOf(world, 'user')
      return { k, isNoted: 'undo_left:property_was_written' in (await world.notes(job)) }
    }
    const write = async (world: ImportWorld, id: string, properties: JsonObject) => {
      world.clock.advance(1_000)
      await world.apply(anEvent('$set', id, properties, { timestampMs: 201 * day }))
    }
    const once = { $set_once: { k: 1 } }
    const unset = { $unset: ['k'] }

    it('a live first touch of the user takes effect, and one of the merged person stays removed', async t => {
      for (const [toucher, left] of [
        ['user', 1],
        ['anon', undefined],
      ] as const) {
        const acts = async (world: ImportWorld) => {
          await write(world, toucher, once)
          await write(world, 'anon', unset)
        }
        assert.deepEqual(await undone(t, acts), { k: left, isNoted: false }, toucher)
      }
    })

    it("another job's value of the user is restored, and one of the merged person stays removed", async t => {
      for (const [writtenTo, left] of [
        ['user', 1],
        ['anon', undefined],
      ] as const) {
        const acts = async (world: ImportWorld) => {
          await publishOf(world, 'e', writtenTo, 1, { $set: { k: 1 } })
          await write(world, 'anon', unset)
        }
        assert.deepEqual(await undone(t, acts), { k: left, isNoted: false }, writtenTo)
      }
    })

    it('the value stays, with a note, when its origin among the merged persons is unknown', async t => {
      for (const writeOther of [
        (world: ImportWorld) => write(world, 'other', once),
        (world: ImportWorld) => publishOf(world, 'e', 'other', 1, { $set: { k: 1 } }),
      ]) {
        const acts = async (world: ImportWorld) => {
          await link(world, 'other')
          await writeOther(world)
          await write(world, 'anon', unset)
        }
        assert.deepEqual(await undone(t, acts), { k: 1, isNoted: true })
      }
    })

    it("the property stays removed, with a note, when the job had removed the user's value", async t => {
      const world = await importWorld(t, open)
      for (const id of ['user', 'anon']) await world.apply(anEvent('e', id, {}, { timestampMs: 200 * day }))
      await publishOf(world, 'e', 'user', 1, { $set: { k: 1 } })
      const job = await publishOf(world, 'e', 'user', 2, unset)
      await write(world, 'anon', unset)
      await world.apply(anEvent('$identify', 'user', { $anon_distinct_id: 'anon' }, { timestampMs: 202 * day }))
      await world.discard(job)
      assert.equal((await valuesOf(world, 'user')).k, undefined)
      assert.deepEqual(await world.notes(job), { 'undo_left:property_was_written': 1 })
    })
  })

  describe(`undoing a job on ${engine} restores values of persons merged since`, () => {
    const identify = (at: number) => anEvent('$identify', 'user', { $anon_distinct_id: 'anon' }, { timestampMs: at })
    const withLive = async (t: TestContext) => {
      const world = await importWorld(t, open)
      for (const id of ['anon', 'user']) await world.apply(anEvent('e', id, {}, { timestampMs: 200 * day }))
      return world
    }

    for (const [what, earlier, undone, properties] of [
      ['set', 1, 5, (k: number) => ({ $set: { k } })],
      ['set once', 5, 1, (k: number) => ({ $set_once: { k } })],
    ] as const)
      it(`values that another job ${what} are restored when the merged person's value had shadowed them`, async t => {
        const world = await withLive(t)
        const first = await publishOf(world, 'e', 'user', earlier, properties(1))
        const second = await publishOf(world, 'e', 'anon', undone, properties(2))
        await world.apply(identify(201 * day))
        assert.equal((await valuesOf(world, 'user')).k, 2)
        await world.discard(second)
        assert.equal((await valuesOf(world, 'user')).k, 1)
        const notes = Object.keys(await world.notes(second))
        // The live merge took over the earlier time, and the other person's own time is unknown.
        assert.deepEqual(notes, undone < earlier ? ['undo_left:created_at_was_merged'] : [])
        await world.discard(first)
        assert.ok(!('k' in (await valuesOf(world, 'user'))))
      })

    it("an earlier job's value of the merged person is restored, unless there is a live first touch", async t => {
      for (const [isTouched, left] of [
        [false, 1],
        [true, 3],
      ] as const) {
        const world = await withLive(t)
        const first = await publishOf(world, 'e', 'anon', 1, { $set: { k: 1 } })
        const second = await publishOf(world, 'e', 'user', 5, { $set: { k: 2 } })
        if (isTouched) await world.apply(anEvent('e', 'user', { $set_once: { k: 3 } }, { timestampMs: 200 * day }))
        await world.apply(identify(201 * day))
        await world.discard(second)
        assert.equal((await valuesOf(world, 'user')).k, left)
        await world.discard(first)
        assert.equal((await valuesOf(world, 'user')).k, isTouched ? 3 : undefined)
      }
    })

    it("the value of the merging job is restored when the merged person's job is undone", async t => {
      const world = await withLive(t)
      const first = await publishOf(world, 'e', 'anon', 5, { $set: { k: 1 } })
      const second = await publishOf(world, '$identify', 'user', 3, { $anon_distinct_id: 'anon', $set_once: { k: 2 } })
      assert.equal((await valuesOf(world, 'user')).k, 1)
      await world.discard(first)
      assert.equal((await valuesOf(world, 'user')).k, 2)
      await world.discard(second)
      for (const id of ['anon', 'user']) assert.ok(!('k' in (await valuesOf(world, id))))
    })

    it('a shadowed value of another job is restored, and removed with that job', async t => {
      const world = await withLive(t)
      const first = await publishOf(world, 'e', 'user', 5, { $set: { k: 1 } })
      const second = await publishOf(world, 'e', 'user', 3, { $set_once: { k: 2 } })
      await world.discard(first)
      assert.equal((await valuesOf(world, 'user')).k, 2)
      assert.deepEqual(await world.notes(first), {})
      await world.discard(second)
      assert.ok(!('k' in (await valuesOf(world, 'user'))))
    })

    // Without the job, the first touch would have been written, and the minor change with it, unless another value
    // existed.
    for (const [what, others] of [
      ['of the person itself', []],
      ['of another person', [anEvent('e', 'other', { $set_once: { k: 1 } }, { timestampMs: 200 * day })]],
    ] as const)
      it(`a minor change that came with a first touch ${what} is noted`, async t => {
        const world = await importWorld(t, open)
        const job = await publishOf(world, 'e', 'anon', 1, { $set_once: { k: 1 } })
        await world.apply(
          ...others,
          identify(200 * day + 1),
          anEvent('e', 'user', { $set: { $os: 'old' } }, { timestampMs: 200 * day + 2 }),
          anEvent('e', 'user', { $set: { $os: 'new' }, $set_once: { k: 1 } }, { timestampMs: 200 * day + 3 }),
          others.length > 0
            ? anEvent('$identify', 'anon', { $anon_distinct_id: 'other' }, { timestampMs: 200 * day + 4 })
            : anEvent('e', 'user', { $set: { k: 2 } }, { timestampMs: 200 * day + 4 }),
        )
        await world.discard(job)
        assert.equal((await valuesOf(world, 'user')).$os, 'old')
        const notes = await world.management.listImportNotes(job.id)
        const written = notes.find(({ reason }) => reason === 'undo_left:property_was_written')
        const keys = written?.samples.map(sample => (sample as { key: string }).key)
        assert.ok(keys?.includes('$os'), String(keys))
      })
  })
}
