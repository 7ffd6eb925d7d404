// How a worker recognizes the store that it used before: the embedded engine, or a server given by a URL.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findMissingRanges } from '#core/processing/row-ranges.ts'
import type { EventRows } from '#ports/events/event-writer.ts'
import { endpointByUrl, eventStoreForTests } from '../support/event-store-for-tests.ts'
import { fixedClock } from '../support/fixed-clock.ts'
import { aStoredEvent } from '../support/values.ts'

for (const kind of ['the embedded engine', 'CLICKHOUSE_URL'] as const) {
  describe(`rows held by the event store, on ${kind}`, () => {
    const clock = fixedClock('2026-12-03T00:00:00Z')
    let projectId = 0
    const held = eventStoreForTests({ clock, ...(kind === 'CLICKHOUSE_URL' && { endpoint: endpointByUrl }) })
    const insert = async (rows: Partial<EventRows>) => {
      clock.advance(1)
      await held.insert(rows)
    }
    const command = (query: string) => held.command(() => query)
    const ranges = async () => (await held.store.findRowRanges('log', null))!.ranges

    it('are not reported missing after repeats and merges, but are after a loss', async () => {
      const event = aStoredEvent({ projectId: ++projectId, capturedAtMs: Date.parse('2026-11-05T10:00:00Z') })
      for (let index = 0; index < 4; index++) await insert({ events: [event] })
      const before = await ranges()
      assert.ok(before.length > 0)
      await command('OPTIMIZE TABLE pennon.events FINAL')
      assert.deepEqual(findMissingRanges(before, await ranges()), [])
      await command('TRUNCATE TABLE pennon.events')
      const [missing, ...others] = findMissingRanges(before, await ranges())
      assert.deepEqual(others, [])
      const { table, partition, oldestMs, newestMs } = missing!
      assert.deepEqual([table, partition], ['events', '0-202611'])
      assert.deepEqual([oldestMs, newestMs], [event.capturedAtMs, event.capturedAtMs + 999])
      await insert({ events: [event] })
      assert.equal(findMissingRanges(before, await ranges()).length, 1, 'what comes later covers nothing of before')
    })

    it('are all reported missing if a table was recreated', async () => {
      await insert({ events: [aStoredEvent({ projectId: ++projectId })] })
      const before = await ranges()
      await command('DROP TABLE pennon.events SYNC')
      await held.store.migrate()
      await insert({ events: [aStoredEvent({ projectId })] })
      assert.ok(findMissingRanges(before, await ranges()).length > 0)
    })

    it('are recognized by any id that their instance wrote there in the last week, but not by another instance’s id', async () => {
      const isMarked = async (instance: string, id: string | null) =>
        (await held.store.findRowRanges(instance, id))!.isMarked
      assert.equal(await isMarked('log', 'never left'), false)
      // As if one mark had been left every 10 s.
      await command(`INSERT INTO pennon.worker_marks
        SELECT 'log', (intDiv(toUnixTimestamp(now()), 5) % 120960 + 120960 - 2 * number) % 120960, toString(number), '', now() - 10 * number
        FROM numbers(1, 60479)`)
      for (const [id, former] of [
        ['first', '1'],
        ['second', 'first'],
        ['third', 'second'],
      ] as const)
        await held.store.writeMark({ instance: 'log', id, former })
      await held.store.writeMark({ instance: 'log of another', id: 'of another', former: null })
      await command('OPTIMIZE TABLE pennon.worker_marks FINAL')
      for (const id of ['1', '8640', '60000', 'second', 'third']) assert.equal(await isMarked('log', id), true, id)
      for (const id of ['of another', null]) assert.equal(await isMarked('log', id), false, `${id}`)
      assert.equal(await isMarked('log of another', 'of another'), true)
      assert.equal(await isMarked('log of another', 'third'), false)
    })

    for (const importJobId of [0, 1])
      it(`include a restored row only if its event has no other row, ${importJobId === 0 ? 'live' : 'imported'}`, async () => {
        const there = aStoredEvent({ projectId: ++projectId, importJobId, personPropertiesJson: '{"as":"then"}' })
        const gone = aStoredEvent({ projectId, importJobId, personPropertiesJson: '{"as":"then"}' })
        await insert({ events: [there] })
        const again = [there, gone].map(event => ({ ...event, personPropertiesJson: '{"as":"today"}' }))
        await insert({ events: again, areRestored: true })
        const personOf = async (uuid: string) => (await held.store.findEvent({ projectId }, uuid))?.personPropertiesJson
        assert.equal(await personOf(there.uuid), '{"as":"then"}')
        assert.equal(await personOf(gone.uuid), '{"as":"today"}')
        await insert({ events: [{ ...gone, personPropertiesJson: '{"as":"sent again"}' }] })
        assert.equal(await personOf(gone.uuid), '{"as":"sent again"}')
      })
  })
}
