import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { fixedClock } from '../../../tests/support/fixed-clock.ts'
import { startSecretUseRecorder } from './secret-uses.ts'

type Use = { id: string; usedAtMs: number }

function usesOn(save: (uses: readonly Use[]) => Promise<void>) {
  const clock = fixedClock(1_000_000)
  const metrics = createMetrics()
  const uses = startSecretUseRecorder({
    save,
    what: 'personal keys',
    clock,
    logger: createSilentLogger(),
    metrics,
    delayMs: 600_000,
  })
  return { clock, metrics, uses }
}

describe('uses of personal keys', () => {
  it('are written at most once a minute per key, several keys at once', async () => {
    const written: (readonly Use[])[] = []
    const { clock, uses } = usesOn(async saved => void written.push(saved))
    const a = { id: 'a', lastUsedAtMs: null }
    const b = { id: 'b', lastUsedAtMs: 5 }
    uses.note(a)
    uses.note(b)
    clock.advance(59_999)
    uses.note(a)
    await uses.close()
    uses.note(b)
    await uses.close()
    clock.advance(1)
    uses.note(a)
    await uses.close()
    assert.deepEqual(written, [
      [
        { id: 'a', usedAtMs: 1_000_000 },
        { id: 'b', usedAtMs: 1_000_000 },
      ],
      [{ id: 'a', usedAtMs: 1_060_000 }],
    ])
  })

  it('are not written when another process has written a later use', async () => {
    const { clock, uses } = usesOn(async () => assert.fail('nothing to write'))
    uses.note({ id: 'a', lastUsedAtMs: clock.nowMs() - 1_000 })
    await uses.close()
  })

  it('are counted as failures if they cannot be written, and retried with the next use after a minute', async () => {
    let calls = 0
    const { clock, metrics, uses } = usesOn(async () => {
      calls++
      throw new PortError('state', 'timeout')
    })
    const key = { id: 'a', lastUsedAtMs: null }
    for (const advanceMs of [0, 1_000, 59_000]) {
      clock.advance(advanceMs)
      uses.note(key)
      await uses.close()
    }
    assert.equal(calls, 2)
    const [failures] = (await metrics.dependencyFailures.get()).values
    assert.deepEqual([failures?.value, failures?.labels], [2, { port: 'management-store', code: 'timeout' }])
  })
})
