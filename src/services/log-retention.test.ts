import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createMemoryEventLog } from '#adapters/memory/memory-event-log.ts'
import { silentLogger } from '#telemetry/log.ts'
import { aCapturedEvent, encodedEvents } from '../../tests/support/captured-events.ts'
import { fixedClock } from '../../tests/support/fixed-clock.ts'
import { createLogRetention } from './log-retention.ts'

it('deletes segments that are processed and old enough, and nothing else', async () => {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const log = createMemoryEventLog({ nowMs: clock.nowMs, segmentBytesMax: 1 })
  for (let n = 0; n < 4; n++) await log.append('main', encodedEvents([aCapturedEvent(n)]))
  let offset = 0
  const retention = createLogRetention({
    log,
    positions: { findLogPosition: async lane => ({ offset: lane === 'main' ? offset : 0, committedAtMs: null }) },
    clock,
    logger: silentLogger(),
    retentionMs: 3_600_000,
  })
  clock.advance(3_600_001)
  assert.equal(await retention.deleteNow(), 0, 'nothing is processed')
  offset = 2
  assert.equal(await retention.deleteNow(), 2)
  const rest = await log.read('main', 0, { recordCountMax: 10, bytesMax: 1e6 })
  assert.equal(rest.firstOffset, 2)
  await log.append('main', encodedEvents([aCapturedEvent(9)]))
  offset = 5
  clock.advance(-1)
  assert.equal(await retention.deleteNow(), 0, 'nothing is old enough')
})

it('deletes what is processed before its time while room is short, and keeps the rest', async () => {
  const clock = fixedClock('2026-11-01T00:00:00Z')
  const bytes = encodedEvents([aCapturedEvent(1)]).bytes.length
  const log = createMemoryEventLog({ nowMs: clock.nowMs, segmentBytesMax: 1, logBytesMax: bytes * 8 })
  for (let n = 0; n < 8; n++) await log.append('main', encodedEvents([aCapturedEvent(n)]))
  let offset = 0
  const retention = createLogRetention({
    log,
    positions: { findLogPosition: async lane => ({ offset: lane === 'main' ? offset : 0, committedAtMs: null }) },
    clock,
    logger: silentLogger(),
    retentionMs: 3_600_000,
  })
  assert.equal(await retention.makeRoomNow(), 0, 'nothing is processed')
  await assert.rejects(log.append('main', encodedEvents([aCapturedEvent(9)])), { code: 'full' })
  offset = 5
  assert.equal(await retention.deleteNow(), 0, 'nothing is old enough')
  assert.equal(await retention.makeRoomNow(), 1, 'no more than has to go')
  await log.append('main', encodedEvents([aCapturedEvent(9)]))
  assert.equal((await log.read('main', 0, { recordCountMax: 10, bytesMax: 1e6 })).firstOffset, 1)
})
