import assert from 'node:assert/strict'
import { it } from 'node:test'
import { crc32 } from 'node:zlib'
import { writeJobState } from '#importer/job/job-state.ts'
import { runSendStage } from '#importer/send/send-stage.ts'
import { type Expected, ExpectedCollector, storeExpectations } from '#importer/stages/expected/expected.ts'
import { type ExpectedEvents, ExpectedTally } from '#importer/stages/expected/expected-events.ts'
import { checkStoredCounts, findExpectationsOfJob } from '#importer/verify/verify-stage.ts'
import { type BatchStandIn, startBatchStandIn } from '../support/batch-stand-in.ts'
import { eventsOf, memoryStagedJob } from '../support/memory-staged-job.ts'
import { sendOptions, storedKeys } from '../support/sending.ts'
import { tempDir } from '../support/temp-dir.ts'

const job = memoryStagedJob({ seed: 21, days: 4, recordsPerDay: 300 })
const personOf = (id: string) => id

/** Sends the job, for which a rehearsal has stored what it expects. */
async function sent(folder: string, standIn: BatchStandIn) {
  const collector = new ExpectedCollector(personOf)
  for (const part of job.parts) {
    collector.beginPart(part)
    for await (const { result } of job.readPart(part))
      if (result.kind === 'events') for (const event of result.events) collector.add(event)
  }
  const options = sendOptions(folder, job, standIn.url)
  const events = (await eventsOf(job)).length
  storeExpectations(options.folder, { sent: events, refused: 0 }, collector.end())
  const checkpoint = await runSendStage(options)
  let read = 0
  const counted = {
    ...job,
    readPart: (...args: Parameters<typeof job.readPart>) => {
      read++
      return job.readPart(...args)
    },
  }
  const find = async (): Promise<Expected & { read: number }> => {
    read = 0
    return { ...(await findExpectationsOfJob({ ...options, job: counted, checkpoint, personOf })), read }
  }
  return { find, folder: options.folder }
}

it('a rehearsal stores the same expected events that a later pass over the sent events would find', async t => {
  const { find, folder } = await sent(tempDir(t), await startBatchStandIn(t))
  const { read: none, ...kept } = await find()
  assert.equal(none, 0)
  writeJobState(folder, 'expected', null)
  const { read, ...found } = await find()
  assert.equal(read, job.parts.length)
  assert.deepEqual(kept, found)
  assert.equal((await find()).read, 0, 'the pass stores what it found')
})

it('the events expected in the service are those that the service accepted', async t => {
  const standIn = await startBatchStandIn(t)
  standIn.fault = ({ events }) => (events.some(({ properties }) => properties.line === 77) ? { status: 400 } : null)
  const { find } = await sent(tempDir(t), standIn)
  const expected = await find()
  assert.equal(expected.read, job.parts.length, 'a refused event needs a pass')
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

it('event names beyond the limit for separate counts are still compared with the service', async () => {
  const events = await eventsOf(job)
  const expectedWith = (max?: { ofDays: number }) => {
    const tally = new ExpectedTally(200, max)
    for (const event of events) tally.add(event)
    return tally.expected()
  }
  const all = expectedWith()
  const stored = [...all.counts].flatMap(([day, names]) => [...names].map(([event, uuids]) => ({ day, event, uuids })))
  const stateOf = async (expected: ExpectedEvents, found: typeof stored) => {
    const { state } = await checkStoredCounts(
      expected,
      (async function* () {
        yield* found
      })(),
    )
    return state
  }
  const few = expectedWith({ ofDays: 2 })
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

it('an event sent twice is expected once, however many events a day has', () => {
  const tally = new ExpectedTally()
  const eventOf = (n: number) => ({ uuid: `u-${n}`, event: 'e', distinctId: 'ada', timeUs: 0, properties: {} })
  for (let round = 0; round < 2; round++) for (let n = 0; n < 20_000; n++) tally.add(eventOf(n))
  assert.equal(tally.expected().rows, 20_000)
})
