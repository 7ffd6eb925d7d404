import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createLiveEventBroadcaster } from '#services/live/live-events.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { liveMessages } from '#wire/live/live-events.ts'
import { eventually } from '../support/eventually.ts'
import { type LiveClient, watchLive } from '../support/live-client.ts'
import { allScopesKey, startManagement } from '../support/management-api.ts'
import { createMemoryEventLog } from '../support/memory/memory-event-log.ts'
import { movedTime } from '../support/moved-time.ts'
import { aCapturedEvent, encodedEvents } from '../support/values.ts'

it('a live view ends if its client stops reading, and every event was either sent or counted as skipped', async t => {
  const time = movedTime()
  const log = createMemoryEventLog({ nowMs: time.monotonicNowMs })
  const live = createLiveEventBroadcaster({
    log,
    messages: liveMessages,
    watchersMax: 10,
    watchersPerProjectMax: 10,
    eventsPerSecondMax: 200,
    metrics: createMetrics(),
    logger: createSilentLogger(),
    nowMs: time.monotonicNowMs,
    workedMs: time.monotonicNowMs,
    ...time,
  })
  // Runs before the server's own hook, which would wait for these streams.
  t.after(async () => {
    const closed = live.close()
    await time.move(0)
    await closed
  })
  const api = await startManagement(t, { liveEvents: live })
  const path = '/api/projects/@current/events/live/'
  const [stuck, reading] = [await watchLive(api.url, path, allScopesKey), await watchLive(api.url, path, allScopesKey)]
  stuck.response.pause()
  // More than the kernel buffers for the client.
  const [rounds, perRound] = [8, 100]
  const propertiesJson = JSON.stringify({ pad: 'x'.repeat(60_000) })
  for (let round = 0; round < rounds; round++) {
    const events = Array.from({ length: perRound }, (_, n) => aCapturedEvent(n, { propertiesJson }))
    await log.append('live', encodedEvents(events))
    live.wake('main')
    await time.move(2_000)
    await eventually(() => reading.of('event').length + skippedOf(reading) === (round + 1) * perRound)
  }
  await time.move(22_000)
  stuck.response.resume()
  await eventually(() => stuck.isClosed())
  assert.deepEqual(stuck.messages.at(-1)!.data, { reason: 'too_slow' })
  assert.ok(stuck.of('skipped').every(({ data }) => Object.keys(data.reasons).join() === 'slow'))
  assert.equal(stuck.of('event').length + skippedOf(stuck), rounds * perRound)
  assert.equal(reading.isClosed(), false)
})

function skippedOf(client: LiveClient): number {
  return client.of('skipped').reduce((sum, { data }) => sum + data.count, 0)
}
