import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { createOutageHandler } from './outage-handler.ts'

function start() {
  const lines: string[] = []
  const metrics = createMetrics()
  const time = { nowMs: 0 }
  const logger = Object.assign(createSilentLogger(), { error: (_: object, line: string) => void lines.push(line) })
  const unavailable = createOutageHandler({ what: 'events', nowMs: () => time.nowMs, metrics, logger })
  return { lines, metrics, time, unavailable }
}

describe('a store that fails while a request is being accepted', () => {
  it('is counted each time, but logged only once a minute', async () => {
    const { lines, metrics, time, unavailable } = start()
    for (const nowMs of [0, 59_999, 60_000, 72_000]) {
      time.nowMs = nowMs
      assert.deepEqual(unavailable(new PortError('event-log', 'full')), { kind: 'unavailable' })
    }
    assert.deepEqual(lines, Array(2).fill('cannot accept events; clients are asked to retry'))
    const { values } = await metrics.dependencyFailures.get()
    assert.deepEqual(values[0], { labels: { port: 'event-log', code: 'full' }, value: 4 })
  })

  it('causes an answer that names the exceeded limit', () => {
    const { unavailable } = start()
    const full = new PortError('event-log', 'full', new Error('PENNON_LOG_MAX_BYTES is reached'))
    assert.deepEqual(unavailable(full), { kind: 'unavailable', reason: 'PENNON_LOG_MAX_BYTES is reached' })
    const salts = new PortError('state', 'full', new Error("ENOSPC: no space left on device, open '/data/salts'"))
    assert.deepEqual(unavailable(salts), { kind: 'unavailable' })
  })

  it('has its errors rethrown if a retry cannot fix them', () => {
    const { lines, unavailable } = start()
    for (const error of [new PortError('log', 'corrupt'), new PortError('log', 'conflict'), new TypeError('ours')])
      assert.throws(() => unavailable(error), error)
    assert.deepEqual(lines, [])
  })
})
