// Jobs that have events, persons or links in common.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anImportedEvent } from '../../support/apply-events.ts'
import { importWorld, type OpenImportState } from '../../support/import-world.ts'
import { day, personWith } from './random-acts.ts'

export function twoJobsContract(engine: string, open: OpenImportState): void {
  describe(`two jobs with the same events on ${engine}`, () => {
    it('count them once, and keep them when one is discarded', async t => {
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

    it('forget the time of a generated link with the job that gave it', async t => {
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

    it('give a generated link the time that the first of them had', async t => {
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
}
