// Jobs that share events.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { JsonObject } from '#core/json.ts'
import type { OpenSqlState } from '../../support/state.ts'
import { anImportedEvent } from '../../support/values.ts'
import { type ImportWorld, importWorld } from '../../support/world/import-world.ts'
import { day, personWith } from './random-acts.ts'

export function twoJobsContract(engine: string, open: OpenSqlState): void {
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

    it('discarding a job discards the time that the job gave to a generated link', async t => {
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

    it('a generated link keeps the time that the first job gave to it', async t => {
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
}
