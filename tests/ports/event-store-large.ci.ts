// Reads of the event store whose limits only hundreds of thousands of rows reach.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { QueryTooLargeError } from '#ports/port-error.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'

describe('a large event store on the embedded engine', () => {
  const held = eventStoreForTests({ limits: { queryTimeoutSeconds: 60 } })

  it('finds a page that is many days and rows away, in both directions', async () => {
    const rowsPerDay = 90_000
    await held.command(
      database => `INSERT INTO ${database}.events (project_id, uuid, event, distinct_id, timestamp, captured_at, properties)
          SELECT 6, generateUUIDv4(), 'e', toString(number), toDateTime64('2026-10-01 00:00:00', 6, 'UTC')
            + toIntervalDay(intDiv(number, ${rowsPerDay})), toDateTime64('2026-11-01 00:00:00', 3, 'UTC'),
            if(number % ${2 * rowsPerDay} = 5, '{"rare":1}', '{}')
          FROM numbers(${8 * rowsPerDay})`,
    )
    const rare = { projectId: 6, limit: 3, properties: [{ key: 'rare', value: 1 }] }
    const all = [0, 2, 4, 6].map(day => String(day * rowsPerDay + 5))
    for (const descending of [true, false]) {
      const first = await held.store.listEvents({ ...rare, descending })
      const second = await held.store.listEvents({ ...rare, descending, after: first.next! })
      const found = [...first.events, ...second.events].map(event => event.distinctId)
      assert.deepEqual(found, descending ? all.toReversed() : all)
      assert.equal(second.next, null)
    }
  })

  it('refuses a history with too many events, but not one with many events that write nothing', async () => {
    const projectId = 5
    const fill = (distinctId: string, rows: number, properties: string) =>
      held.command(
        database => `INSERT INTO ${database}.events (project_id, event, distinct_id, uuid, person_mode, timestamp, created_at, properties)
        SELECT ${projectId}, 'e', '${distinctId}', generateUUIDv4(number),
          'full', number, number, ${properties} FROM numbers(${rows})`,
      )
    await fill('silent', 100_001, `'{"page":1}'`)
    await fill('busy', 100_001, `'{"$set":{"page":1}}'`)
    await fill('large', 68, `concat('{"$set":{"text":"', repeat('x', 1000000), '"}}')`)
    const read = async (...distinctIds: string[]) => (await held.store.readHistory(projectId, { distinctIds })).length
    assert.equal(await read('silent', 'nobody'), 1)
    for (const id of ['busy', 'large']) await assert.rejects(read('silent', id), QueryTooLargeError)
    const longIds = Array.from({ length: 2_000 }, (_, index) => `${'\u65e5'.repeat(390)} ${index}`)
    assert.equal(await read(...longIds, 'silent'), 1)
    assert.deepEqual(await held.store.findLinks(projectId, longIds), [])
  })
})
