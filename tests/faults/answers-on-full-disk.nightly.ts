// The disk of the event store fills up. An answer that no longer fits must be a failure, never an empty result; answers
// that fit in memory still work.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createClickHouseEventStore } from '#adapters/clickhouse/clickhouse-event-store.ts'
import { startEngine } from '../support/engine.ts'
import { fillDisk, mountSmallDisk, noSmallDisk } from '../support/small-disk.ts'
import { aStoredEvent } from '../support/values.ts'

describe('an event store without space on its disk', { skip: noSmallDisk() }, () => {
  it('returns answers that fit in memory, and fails for larger ones', async t => {
    const disk = mountSmallDisk(400 * 2 ** 20)
    t.after(disk.remove)
    const engine = await startEngine({}, disk.path)
    t.after(() => engine.stop())
    const store = createClickHouseEventStore({ endpoint: engine.endpoint, clock: { nowMs: Date.now } })
    t.after(() => store.close())
    await store.migrate()
    const propertiesJson = JSON.stringify({ text: 'x'.repeat(100_000) })
    const events = Array.from({ length: 40 }, (_, n) => aStoredEvent({ projectId: 1, timestampMs: n, propertiesJson }))
    await store.insert({ events, pendingEvents: [], overrides: [], recordings: [], rejected: [] })
    const countListed = async (limit: number) =>
      (await store.listEvents({ projectId: 1, descending: true, limit })).events.length
    assert.equal(await countListed(40), 40)
    const pass = async (sql: string) => {
      const query = { projectId: 1, sql, params: [['wait_end_of_query', '1']], acceptEncoding: null } as const
      const passed = await store.forwardSql(query, new AbortController().signal)
      assert.ok(passed.ok)
      let text = ''
      for await (const piece of passed.value.body) text += Buffer.from(piece)
      return text
    }

    const freeDisk = fillDisk(disk.path)
    assert.equal(await countListed(5), 5)
    await assert.rejects(countListed(40), { name: 'PortError', code: 'unavailable' })
    // As ClickHouse drivers ask: the whole answer goes to a file.
    const listed = ['TSV', 'RowBinaryWithNamesAndTypes'].map(format => `SELECT properties FROM events FORMAT ${format}`)
    for (const sql of listed) await assert.rejects(pass(sql), { name: 'PortError', code: 'unavailable' })
    assert.equal(await pass('SELECT properties FROM events FORMAT Null'), '')
    freeDisk()
    assert.equal(await countListed(40), 40)
    assert.equal((await pass(listed[0]!)).split('\n').length, 41)
  })
})
