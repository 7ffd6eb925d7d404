import assert from 'node:assert/strict'
import { it } from 'node:test'
import { crc32 } from 'node:zlib'
import { silentProgress } from '#importer/job/progress.ts'
import { sendStage } from '#importer/send/send-stage.ts'
import { expectedEvents } from '#importer/verify/expected-events.ts'
import { startBatchStandIn } from '../support/batch-stand-in.ts'
import { memoryStagedJob } from '../support/memory-staged-job.ts'
import { sendOptions, storedKeys } from '../support/sending.ts'
import { tempDir } from '../support/temp-dir.ts'

for (const canaryEvents of [500, 0])
  it(`what a service has to hold is what it took, ${canaryEvents > 0 ? 'in the middle of sending' : 'at the end'}`, async t => {
    const standIn = await startBatchStandIn(t)
    const job = memoryStagedJob({ seed: 21, days: 4, recordsPerDay: 300 })
    standIn.fault = ({ events }) => (events.some(({ properties }) => properties.line === 77) ? { status: 400 } : null)
    const options = sendOptions(tempDir(t), job, standIn.url, canaryEvents > 0 ? { canaryEvents } : {})
    const { checkpoint } = await sendStage(options)
    const { folder, signal } = options
    const expected = await expectedEvents({ folder, job, checkpoint, signal, progress: silentProgress })
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
