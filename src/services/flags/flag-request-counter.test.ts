import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSilentLogger } from '#telemetry/log.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { startFlagRequestCounter } from './flag-request-counter.ts'

type Counted = { projectId: number; day: string; count: number }

function counterOn(addFlagRequests: (counts: readonly Counted[]) => Promise<void>) {
  const clock = fixedClock('2026-03-08T23:59:59Z')
  return {
    clock,
    counter: startFlagRequestCounter({
      usage: { addFlagRequests, sumFlagRequests: async () => [] },
      clock,
      logger: createSilentLogger(),
      flushMs: 60_000,
    }),
  }
}

describe('the counter of flag requests', () => {
  it('counts per project under the UTC day of the request', async () => {
    const written: Counted[] = []
    const { clock, counter } = counterOn(async counts => void written.push(...counts))
    counter.count(1)
    counter.count(1)
    counter.count(2)
    clock.advance(1_000)
    counter.count(1)
    await counter.close()
    assert.deepEqual(written, [
      { projectId: 1, day: '2026-03-08', count: 2 },
      { projectId: 2, day: '2026-03-08', count: 1 },
      { projectId: 1, day: '2026-03-09', count: 1 },
    ])
  })

  it('writes nothing without requests', async () => {
    const { counter } = counterOn(async () => assert.fail('nothing to write'))
    await counter.close()
  })
})
