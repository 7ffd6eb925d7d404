import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { createLogger } from '#telemetry/log.ts'
import { runPeriodically } from './run-periodically.ts'

describe('a periodic task', () => {
  /** @returns the lines logged by a run whose task fails with `error` and is then stopped. */
  async function linesOf(error: Error, stopsFirst: boolean): Promise<Record<string, unknown>[]> {
    const lines: Record<string, unknown>[] = []
    const logger = createLogger(
      { level: 'info', process: 'test' },
      { write: line => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    )
    const stop = new AbortController()
    let runs = 0
    const task = async (signal: AbortSignal) => {
      assert.equal(signal, stop.signal)
      if (++runs === 2 || stopsFirst) stop.abort()
      if (runs === 1) throw error
    }
    await runPeriodically(task, { everyMs: 1, what: 'counting', logger, signal: stop.signal })
    return lines
  }

  it('logs a stack when it fails, and one line without a stack when it takes too long', async () => {
    const [failed, ...others] = await linesOf(new PortError('event-store', 'corrupt', new Error('a part')), false)
    assert.deepEqual(others, [])
    assert.equal(failed?.msg, 'counting failed; retrying')
    assert.match((failed!.err as { stack: string }).stack, /at /)
    const slow = await linesOf(new PortError('event-store', 'timeout', new Error('10 minutes')), false)
    const said = slow.map(({ msg, reason, err }) => ({ msg, reason, err }))
    const msg = 'counting took too long; retrying'
    assert.deepEqual(said, [{ msg, reason: 'event-store: timeout: 10 minutes', err: undefined }])
  })

  it('does not count as failed when it is interrupted by a stop', async () => {
    assert.deepEqual(await linesOf(new Error('aborted'), true), [])
  })
})
