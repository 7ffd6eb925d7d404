// Undoing a job whose persons a later job or live events have merged.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { personUuid } from '#core/persons/person-uuid.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anEvent, anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { day, personWith, withoutMarks } from './random-acts.ts'

type Sent = readonly [id: string, atDay: number, properties: JsonObject]

export function mergedPersonsContract(engine: string, open: OpenSqlState): void {
  const publish = async (world: ImportWorld, ...sent: readonly Sent[]) => {
    const job = await world.createJob()
    const options = { importJobId: job.id }
    const event = ([id, atDay, properties]: Sent) => {
      const name = '$anon_distinct_id' in properties ? '$identify' : 'e'
      return anImportedEvent(name, id, atDay * day, properties, options)
    }
    await world.apply(...sent.map(event))
    await world.publish(job)
    return job
  }
  const liveEvent = (id: string, atDay: number, properties: JsonObject = {}) =>
    anEvent('$anon_distinct_id' in properties ? '$identify' : 'e', id, properties, { timestampMs: atDay * day })
  const kOf = async (world: ImportWorld, id: string) =>
    (JSON.parse((await personWith(world, id))!.properties) as JsonObject).k
  const set = (k: number) => ({ $set: { k } })
  const setOnce = (k: number) => ({ $set_once: { k } })
  const into = (id: string, other: string, atDay = 8): Sent => [id, atDay, { $anon_distinct_id: other }]
  const setLast = [['anon', 9, set(2)] as Sent, ['other', 2, setOnce(1)] as Sent] as const

  describe(`undoing a job on ${engine} whose persons a later job merged`, () => {
    for (const [what, sent] of [
      ['set and set once', setLast],
      ['set once and set', [['anon', 2, setOnce(1)] as Sent, ['other', 9, set(2)] as Sent]],
    ] as const)
      it(`removes what the job ${what} on the merged persons`, async t => {
        const world = await importWorld(t, open)
        const job = await publish(world, ['user', 1, {}], ...sent)
        await publish(world, into('user', 'other'), into('user', 'anon'))
        assert.equal(await kOf(world, 'user'), 2)
        await world.discard(job)
        assert.equal(await kOf(world, 'user'), undefined)
        assert.deepEqual(await world.notes(job), { 'undo_left:person_is_used': 1 })
      })

    it('restores what an earlier job and the later one wrote to the same property', async t => {
      for (const [earlier, later, left] of [
        [3, null, 3],
        [null, 4, 4],
        [3, 4, 3],
      ]) {
        const world = await importWorld(t, open)
        if (earlier != null) await publish(world, ['anon', 7, set(earlier)])
        const job = await publish(world, ['user', 1, {}], ...setLast)
        const sent: readonly Sent[] = later == null ? [] : [['other', 6, set(later)]]
        await publish(world, into('user', 'other'), into('user', 'anon'), ...sent)
        assert.equal(await kOf(world, 'user'), 2)
        await world.discard(job)
        assert.equal(await kOf(world, 'user'), left)
      }
    })

    for (const isUsedSince of [false, true])
      it(`keeps live values that its merge brought${isUsedSince ? ' into a person used since' : ''} until the other merge is undone too`, async t => {
        const world = await importWorld(t, open)
        await world.apply(
          liveEvent('user', 200),
          liveEvent('anon', 201, setOnce(0)),
          liveEvent('other', 202, setOnce(0)),
        )
        const before = await withoutMarks(world)
        const jobs = [await publish(world, into('user', 'anon')), await publish(world, into('user', 'other'))]
        if (isUsedSince) await world.apply(liveEvent('user', 203, { $set: { l: 1 } }))
        await world.discard(jobs[0]!)
        assert.equal(await kOf(world, 'user'), 0)
        assert.equal(await kOf(world, 'anon'), 0)
        await world.discard(jobs[1]!)
        assert.equal(await kOf(world, 'user'), undefined)
        if (!isUsedSince) assert.deepEqual(await withoutMarks(world), before)
        for (const job of jobs) assert.deepEqual(await world.notes(job), {})
      })

    it('resets the creation time to the earliest of the persons that stay merged', async t => {
      const world = await importWorld(t, open)
      await world.apply(liveEvent('user', 200), liveEvent('anon', 4))
      const job = await publish(world, ['user', 2, {}])
      const later = await publish(world, into('user', 'anon'))
      await world.discard(job)
      assert.equal((await personWith(world, 'user'))?.created_at, 4 * day)
      await world.discard(later)
      assert.equal((await personWith(world, 'user'))?.created_at, 200 * day)
    })
  })

  it(`undoing a job on ${engine} restores a live first touch that another import hid during the merge`, async t => {
    const world = await importWorld(t, open)
    await publish(world, ['user', 8, { $unset: ['k'] }])
    const job = await publish(world, ['anon', 1, set(1)])
    await world.apply(liveEvent('anon', 200, setOnce(2)), liveEvent('user', 201, { $anon_distinct_id: 'anon' }))
    assert.equal(await kOf(world, 'user'), undefined)
    await world.discard(job)
    assert.equal(await kOf(world, 'user'), 2)
  })

  it(`undoing a job on ${engine} removes its values from a person that live events merged from hundreds`, async t => {
    const ids = Array.from({ length: 300 }, (_, index) => `anon-${index}`)
    const byUuid = ids.toSorted((a, b) => (personUuid(1, a) < personUuid(1, b) ? -1 : 1))
    const [first, last] = [byUuid[0]!, byUuid.at(-1)!]
    for (const [setting, other] of [
      [first, last],
      [last, first],
    ] as const) {
      const world = await importWorld(t, open)
      await world.apply(liveEvent('user', 200))
      const writes = new Map<string, JsonObject>([
        [setting, set(2)],
        [other, setOnce(1)],
      ])
      const job = await publish(world, ...ids.map((id): Sent => [id, id === setting ? 9 : 2, writes.get(id) ?? {}]))
      for (const id of [other, setting]) await world.apply(liveEvent('user', 201, { $anon_distinct_id: id }))
      assert.equal(await kOf(world, 'user'), 2)
      await world.discard(job)
      assert.equal(await kOf(world, 'user'), undefined)
    }
  })
}
