import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { RefusedCount } from '#ports/state/accounting-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { startRefusedItemCounter } from './refused-counter.ts'

function world(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const clock = fixedClock('2026-03-08T23:59:59Z')
  const written: (readonly RefusedCount[])[] = []
  let fails = false
  const counter = startRefusedItemCounter({
    store: {
      addRefused: async counts => {
        if (fails) throw new Error('down')
        written.push(structuredClone(counts))
      },
    },
    clock,
    logger: createSilentLogger(),
    flushMs: 5_000,
  })
  t.after(() => counter.close())
  return {
    counter,
    clock,
    written,
    setFailing: (value: boolean) => {
      fails = value
    },
    flush: async () => {
      t.mock.timers.tick(5_000)
      await new Promise(setImmediate)
    },
  }
}

const late = Date.parse('2026-03-08T23:59:59Z')

describe('the counter of refused events', () => {
  it('adds up counts by project, day and reason, and takes only one sample for each sum', async t => {
    const { counter, clock, written, flush } = world(t)
    let asked = 0
    const sample = () => ({ sample: ++asked })
    counter.count(1, 'events_over_quota', 2, sample)
    counter.count(1, 'events_over_quota', 3, sample)
    counter.count(2, 'events_over_quota', 1)
    counter.count(1, 'invalid_json', 1)
    counter.count(1, 'invalid_json', 0)
    clock.advance(1_000)
    counter.count(1, 'invalid_json', 7)
    await flush()
    const row = { projectId: 1, day: '2026-03-08', lastSeenMs: late, warning: null }
    assert.deepEqual(written, [
      [
        { ...row, reason: 'events_over_quota', count: 5, warning: { sample: 1 } },
        { ...row, projectId: 2, reason: 'events_over_quota', count: 1 },
        { ...row, reason: 'invalid_json', count: 1 },
        { ...row, day: '2026-03-09', reason: 'invalid_json', count: 7, lastSeenMs: late + 1_000 },
      ],
    ])
    await flush()
    assert.equal(written.length, 1, 'nothing new')
  })

  it('retries counts that could not be written', async t => {
    const { counter, written, flush, setFailing } = world(t)
    setFailing(true)
    counter.count(1, 'invalid_json', 2)
    counter.count(1, 'events_over_quota', 1, () => ({ first: true }))
    await flush()
    counter.count(1, 'invalid_json', 3)
    await flush()
    setFailing(false)
    await counter.close()
    assert.deepEqual(
      written.flat().map(({ reason, count, warning }) => ({ reason, count, warning })),
      [
        { reason: 'invalid_json', count: 5, warning: null },
        { reason: 'events_over_quota', count: 1, warning: { first: true } },
      ],
    )
  })

  it('writes many counts in several transactions, up to a limit', async t => {
    const { counter, written } = world(t)
    for (let projectId = 1; projectId <= 10_050; projectId++) counter.count(projectId, 'invalid_json', 1)
    await counter.close()
    assert.equal(written.length, 20)
    assert.equal(written.flat().length, 10_000)
  })
})
