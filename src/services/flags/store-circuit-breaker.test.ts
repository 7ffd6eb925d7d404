import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { PortError, QueueFullError } from '#ports/port-error.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { createStoreCircuitBreaker, storeLimits } from './store-circuit-breaker.ts'

/** A guard that stops calling the store after two failures, and the timers that it starts. */
function start(pendingMax = 10) {
  const timers: { readonly run: () => void; readonly delayMs: number; isCancelled: boolean }[] = []
  const guard = createStoreCircuitBreaker({
    port: 'state',
    task: 'asking',
    without: 'nothing is answered',
    logger: createSilentLogger(),
    metrics: createMetrics(),
    timeoutMs: 250,
    pendingMax,
    failuresMax: 2,
    restMs: 1_000,
    monotonicNowMs: () => 0,
    startTimer(run, delayMs) {
      const timer = { run, delayMs, isCancelled: false }
      timers.push(timer)
      return {
        cancel: () => {
          timer.isCancelled = true
        },
      }
    },
  })
  /** Fires the timers that are pending now. @returns their delays. */
  const fire = () => {
    const due = timers.splice(0).filter(({ isCancelled }) => !isCancelled)
    for (const { run } of due) run()
    return due.map(({ delayMs }) => delayMs)
  }
  return { guard, fire }
}
const hang = () => new Promise<never>(() => {})

describe('a guarded store', () => {
  it('does not count as failed when a caller’s own time limit, shorter than the guard’s, has passed', async () => {
    const { guard, fire } = start()
    const answers = [guard.run(hang, 1), guard.run(hang, 1)]
    assert.deepEqual(fire(), [1, 1])
    assert.deepEqual(await Promise.all(answers), [
      { ok: false, error: 'timeout' },
      { ok: false, error: 'timeout' },
    ])
    assert.equal(guard.isDown(), false)
    assert.deepEqual(fire(), [249, 249])
    assert.equal(guard.isDown(), true)
  })

  it('may answer after its caller gave up, and counts as working from then on', async () => {
    const { guard, fire } = start()
    await guard.run(() => Promise.reject(new PortError('state', 'unavailable')))
    const { promise, resolve } = Promise.withResolvers<number>()
    const answer = guard.run(() => promise, 1)
    fire()
    resolve(7)
    assert.deepEqual(await answer, { ok: false, error: 'timeout' })
    await turn()
    assert.deepEqual(fire(), [])
    await guard.run(() => Promise.reject(new PortError('state', 'unavailable')))
    assert.equal(guard.isDown(), false, 'two failures, but not in a row')
  })

  it('counts as having answered in time if its answer came while the event loop was blocked', async t => {
    const { port1, port2 } = new MessageChannel()
    t.after(() => port1.close())
    const came: string[] = []
    const bothCame = new Promise<void>(resolve => {
      const note = (what: string) => {
        if (came.push(what) === 2) resolve()
      }
      port1.onmessage = () => note('answer')
      // A turn of the event loop runs timers first, then handles messages from other threads.
      setImmediate(() => {
        storeLimits.startTimer(() => note('time limit'), 1)
        port2.postMessage(null)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
      })
    })
    await bothCame
    assert.deepEqual(came, ['answer', 'time limit'])
  })

  it('does not count as failed when the queue of calls to it is full', async () => {
    const { guard, fire } = start(1)
    for (let count = 0; count < 5; count++) {
      const refused = await guard.run(() => Promise.reject(new QueueFullError('state')))
      assert.deepEqual(refused, { ok: false, error: 'database_unavailable' })
    }
    assert.equal(guard.isDown(), false)
    const hanging = guard.run(hang)
    for (let count = 0; count < 5; count++) assert.deepEqual(await guard.run(hang), { ok: false, error: 'timeout' })
    assert.equal(guard.isDown(), false)
    assert.deepEqual(fire(), [250])
    assert.deepEqual(await hanging, { ok: false, error: 'timeout' })
  })
})
