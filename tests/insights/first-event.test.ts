// Where a range of "all" times begins, and that SQL puts times into the buckets that Node made, on the real engine.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createBuckets } from '#core/insights/buckets.ts'
import {
  bucketStartSql,
  buildBucketParams,
  epochMsSql,
  isWithinBucketsSql,
} from '../../src/adapters/clickhouse/insights/bucket-expression.ts'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { aStoredEvent } from '../support/values.ts'

describe('insights queries on the engine', () => {
  const held = eventStoreForTests()
  const insert = (events: ReturnType<typeof aStoredEvent>[]) => held.insert({ events })

  it('find the first event of a project since 2015, using only the current copy of each event', async () => {
    assert.equal(await held.store.findFirstEventTime({ projectId: 1 }), null)
    const first = aStoredEvent({ projectId: 1, timestampMs: Date.parse('2015-01-01T10:00:00.000Z') })
    const wrong = aStoredEvent({ projectId: 1, timestampMs: Date.parse('1900-01-01T00:00:00.000Z') })
    const ofAnother = aStoredEvent({ projectId: 2, timestampMs: Date.parse('2015-01-01T00:00:00.000Z') })
    await insert([aStoredEvent({ projectId: 1 }), ofAnother, first, wrong])
    assert.equal(await held.store.findFirstEventTime({ projectId: 1 }), first.timestampMs)
    const later = { ...first, timestampMs: first.timestampMs + 3_600_000 }
    await insert([later])
    assert.equal(await held.store.findFirstEventTime({ projectId: 1 }), later.timestampMs)
  })

  it('put each time into the bucket that contains it', async () => {
    const range = { fromMs: Date.parse('1969-12-27T15:00:00Z'), endMs: Date.parse('1970-01-03T11:22:33.456Z') }
    const calendar = { timezone: 'Europe/Berlin', weekStartDay: 1 } as const
    const buckets = createBuckets({ ...range, startsExactly: true }, 'day', calendar, 100)!
    const times = [...buckets.edges.flatMap(edge => [edge - 1, edge, edge + 1]), range.fromMs - 86_400_000]
    const query = `SELECT ${epochMsSql('time')}, ${bucketStartSql('time')} FROM (
      SELECT fromUnixTimestamp64Milli(arrayJoin({times:Array(Int64)}), 'UTC') AS time) WHERE ${isWithinBucketsSql('time')}`
    const rows = await held.clients.read(async client => {
      const result = await client.query({
        query,
        query_params: { ...buildBucketParams(buckets), times },
        format: 'JSONCompactEachRow',
      })
      return result.json<[string, string]>()
    })
    const inside = times.filter(ms => ms >= range.fromMs && ms < range.endMs)
    const expected = inside.map(ms => [ms, buckets.edges.findLast(edge => edge <= ms)])
    assert.deepEqual(
      rows.map(([ms, edge]) => [Number(ms), Number(edge)]),
      expected,
    )
  })
})
