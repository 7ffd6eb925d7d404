import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import type { Deferral } from '#ports/state/worker-state.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { openedWriter } from '../../../tests/support/sqlite-log-files.ts'
import { aCapturedEvent, encodedEvents, offsetsOf } from '../../../tests/support/values.ts'
import { createLogCleanup } from './log-retention.ts'

/** A stream of segments with one record each, in a log with a retention of one hour. */
async function aLog(t: TestContext, logBytesMax: number, limits = { segmentBytesMax: 1, segmentAgeMs: Infinity }) {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const { folder, writer } = await openedWriter(t, { nowMs: clock.nowMs, ...limits, logBytesMax })
  const log = openSqliteLogReader({ folder, logBytesMax })
  t.after(() => log.close())
  let processedOffset = 0
  let deferral: Deferral | null = null
  const retention = createLogCleanup({
    log,
    positions: {
      findDeferral: async stream => (stream === 'main' ? deferral : null),
      findLogPosition: async stream => ({ offset: stream === 'main' ? processedOffset : 0, committedAtMs: null }),
    },
    clock,
    logger: createSilentLogger(),
    retentionMs: 3_600_000,
  })
  const propertiesJson = JSON.stringify({ pad: 'x'.repeat(300_000) })
  return {
    retention,
    clock,
    append: (n: number) => writer.append('live', encodedEvents([aCapturedEvent(n, { propertiesJson })])),
    process: (untilOffset: number) => {
      processedOffset = untilOffset
    },
    /** Defers one project from this offset on, which is also the second cursor's position; null defers none. */
    defer: (offset: number | null) => {
      deferral = offset === null ? null : { offset, projects: [{ projectId: 1, fromOffset: offset }] }
    },
    oldest: async () => offsetsOf(await log.read('main', 0, { recordCountMax: 1, bytesMax: 1 }))[0],
  }
}

it('log retention deletes only segments that are processed and old enough', async t => {
  const { append, oldest, retention, clock, process } = await aLog(t, 1e9)
  for (let n = 0; n < 4; n++) await append(n)
  clock.advance(3_600_001)
  assert.equal(await retention.deleteNow(), 0, 'nothing is processed')
  process(2)
  assert.equal(await retention.deleteNow(), 2)
  assert.equal(await oldest(), 2)
  await append(9)
  process(5)
  clock.advance(-1)
  assert.equal(await retention.deleteNow(), 0, 'nothing is old enough')
})

it('log retention deletes the last segment in time even if no further records arrive', async t => {
  const { append, oldest, retention, clock, process } = await aLog(t, 1e9, { segmentBytesMax: 1e9, segmentAgeMs: 1 })
  await append(0)
  process(1)
  clock.advance(3_600_001)
  // The writer checks once a second whether the segment is old.
  await eventually(async () => (await retention.deleteNow()) === 1)
  assert.equal(await oldest(), undefined)
  await append(1)
  assert.equal(await oldest(), 1)
})

it('log retention deletes segments stamped by a clock that was ahead, together with the segments after them', async t => {
  const { append, oldest, retention, clock, process } = await aLog(t, 1e9)
  clock.advance(50 * 365 * 86_400_000)
  for (const n of [0, 1]) await append(n)
  clock.advance(-50 * 365 * 86_400_000)
  for (const n of [2, 3]) await append(n)
  process(4)
  assert.equal(await retention.deleteNow(), 0)
  clock.advance(3_600_001)
  assert.equal(await retention.deleteNow(), 3)
  assert.equal(await oldest(), 3)
})

it('log retention keeps unprocessed records of a deferred project, however far other projects are processed', async t => {
  const { append, oldest, retention, clock, process, defer } = await aLog(t, 1e9)
  for (let n = 0; n < 4; n++) await append(n)
  clock.advance(3_600_001)
  process(3)
  defer(1)
  assert.equal(await retention.deleteNow(), 1)
  assert.equal(await oldest(), 1)
  defer(null)
  assert.equal(await retention.deleteNow(), 2)
})

it('log retention deletes processed segments early while space is short, and keeps unprocessed ones', async t => {
  const { append, oldest, retention, process } = await aLog(t, 3_000_000)
  await assert.rejects(
    async () => {
      for (let n = 0; n < 20; n++) await append(n)
    },
    { code: 'full' },
  )
  assert.equal(await retention.reclaimSpaceNow(), 0, 'nothing is processed')
  process(5)
  assert.equal(await retention.deleteNow(), 0, 'nothing is old enough')
  const goneCount = await retention.reclaimSpaceNow()
  assert.ok(
    goneCount >= 1 && goneCount <= 3,
    `${goneCount} segments were deleted, but no more than necessary should be`,
  )
  assert.equal(await oldest(), goneCount)
  await eventually(() => append(9).then(yes, no), { what: 'space in the log' })
})

const yes = () => true
const no = () => false
