import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createMemoryEventLog } from '#adapters/memory/memory-event-log.ts'
import { silentLogger } from '#telemetry/log.ts'
import { aCapturedEvent, encodedEvents } from '../../../tests/support/captured-events.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { createLogRetention } from './log-retention.ts'

/** A main lane of segments with one record each, and the retention of its log: an hour. */
async function aLog({ segmentCount, logBytesMax }: { segmentCount: number; logBytesMax?: number }) {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const log = createMemoryEventLog({
    nowMs: clock.nowMs,
    segmentBytesMax: 1,
    ...(logBytesMax !== undefined && { logBytesMax }),
  })
  for (let n = 0; n < segmentCount; n++) await log.append('main', encodedEvents([aCapturedEvent(n)]))
  let processedOffset = 0
  const retention = createLogRetention({
    log,
    positions: {
      findLogPosition: async lane => ({ offset: lane === 'main' ? processedOffset : 0, committedAtMs: null }),
    },
    clock,
    logger: silentLogger(),
    retentionMs: 3_600_000,
  })
  const process = (untilOffset: number) => {
    processedOffset = untilOffset
  }
  return { log, retention, clock, process }
}

it('deletes segments that are processed and old enough, and nothing else', async () => {
  const { log, retention, clock, process } = await aLog({ segmentCount: 4 })
  clock.advance(3_600_001)
  assert.equal(await retention.deleteNow(), 0, 'nothing is processed')
  process(2)
  assert.equal(await retention.deleteNow(), 2)
  const rest = await log.read('main', 0, { recordCountMax: 10, bytesMax: 1e6 })
  assert.equal(rest.firstOffset, 2)
  await log.append('main', encodedEvents([aCapturedEvent(9)]))
  process(5)
  clock.advance(-1)
  assert.equal(await retention.deleteNow(), 0, 'nothing is old enough')
})

it('deletes what is processed before its time while room is short, and keeps the rest', async () => {
  const bytes = encodedEvents([aCapturedEvent(1)]).bytes.length
  const { log, retention, process } = await aLog({ segmentCount: 8, logBytesMax: bytes * 8 })
  assert.equal(await retention.makeRoomNow(), 0, 'nothing is processed')
  await assert.rejects(log.append('main', encodedEvents([aCapturedEvent(9)])), { code: 'full' })
  process(5)
  assert.equal(await retention.deleteNow(), 0, 'nothing is old enough')
  assert.equal(await retention.makeRoomNow(), 1, 'no more than has to go')
  await log.append('main', encodedEvents([aCapturedEvent(9)]))
  assert.equal((await log.read('main', 0, { recordCountMax: 10, bytesMax: 1e6 })).firstOffset, 1)
})
