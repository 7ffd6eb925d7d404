import assert from 'node:assert/strict'
import { it } from 'node:test'
import { crc32 } from 'node:zlib'
import { sendStage } from '#importer/send/send-stage.ts'
import { collectExpectedEvents, type ExpectedEvents } from '#importer/verify/expected-events.ts'
import { checkCounts } from '#importer/verify/verify-stage.ts'
import { startBatchStandIn } from '../support/batch-stand-in.ts'
import { memoryStagedJob } from '../support/memory-staged-job.ts'
import { sendOptions, storedKeys } from '../support/sending.ts'
import { silentProgress } from '../support/silent-progress.ts'
import { tempDir } from '../support/temp-dir.ts'

it('the events expected in the service are those it accepted', async t => {
  const standIn = await startBatchStandIn(t)
  const job = memoryStagedJob({ seed: 21, days: 4, recordsPerDay: 300 })
  standIn.fault = ({ events }) => (events.some(({ properties }) => properties.line === 77) ? { status: 400 } : null)
  const options = sendOptions(tempDir(t), job, standIn.url)
  const checkpoint = await sendStage(options)
  const { folder, signal } = options
  const expected = await collectExpectedEvents({ folder, job, checkpoint, signal, progress: silentProgress })
  const stored = storedKeys(standIn.taken)
  const taken = standIn.taken.flatMap(({ events }) => events)
  assert.equal(expected.rows, stored.length)
  const counts = Map.groupBy(taken, ({ timestamp, event }) => `${timestamp.slice(0, 10)} ${event}`)
  assert.deepEqual(
    new Map(
      [...expected.counts].flatMap(([day, names]) => [...names].map(([name, n]) => [`${day} ${name}`, n] as const)),
    ),
    new Map([...counts].map(([key, events]) => [key, new Set(events.map(({ uuid }) => uuid)).size])),
  )
  const buckets = expected.idBuckets.map(() => 0)
  for (const { properties } of taken) buckets[crc32(properties.distinct_id) % 256]!++
  assert.deepEqual(expected.idBuckets, buckets)
  assert.equal(expected.samples.length, 200)
  const uuids = new Set(taken.map(({ uuid }) => uuid))
  assert.ok(expected.samples.every(([event]) => uuids.has(event!.uuid)))
})

it('event names beyond the limit for separate counts are still compared with the service', async t => {
  const standIn = await startBatchStandIn(t)
  const job = memoryStagedJob({ seed: 21, days: 4, recordsPerDay: 300 })
  const options = sendOptions(tempDir(t), job, standIn.url)
  const checkpoint = await sendStage(options)
  const { folder, signal } = options
  const expectedWith = (max?: { ofDays: number }) =>
    collectExpectedEvents({ folder, job, checkpoint, signal, progress: silentProgress, ...(max && { max }) })
  const all = await expectedWith()
  const stored = [...all.counts].flatMap(([day, names]) => [...names].map(([event, uuids]) => ({ day, event, uuids })))
  const stateOf = async (expected: ExpectedEvents, found: typeof stored) => {
    const { state } = await checkCounts(
      expected,
      (async function* () {
        yield* found
      })(),
    )
    return state
  }
  const few = await expectedWith({ ofDays: 2 })
  assert.ok(few.otherCounts.size > 0)
  assert.equal(few.rows, all.rows)
  for (const expected of [all, few]) {
    assert.equal(await stateOf(expected, stored), 'equal')
    for (const index of stored.keys()) {
      const lessOne = stored.map((each, at) => (at === index ? { ...each, uuids: each.uuids - 1 } : each))
      assert.equal(await stateOf(expected, lessOne), 'differs', JSON.stringify(stored[index]))
    }
    assert.equal(await stateOf(expected, [...stored, { day: stored[0]!.day, event: 'another', uuids: 1 }]), 'differs')
  }
})
