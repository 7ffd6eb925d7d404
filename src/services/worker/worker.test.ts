import assert from 'node:assert/strict'
import { syncBuiltinESMExports } from 'node:module'
import { it } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { createLogger } from '#telemetry/log.ts'
import { createWorker } from './worker.ts'

it('a worker logs that it waits for the event store only if that takes longer than a usual start', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  // The worker waits with `node:timers/promises`.
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.timers.reset()
    syncBuiltinESMExports()
  })
  const stopping = new AbortController()
  const lines: string[] = []
  let tryCount = 0
  const worker = createWorker({
    processor: { state: () => 'starting', run: async () => 'stopped', wakeUp: () => undefined } as never,
    events: {
      migrate: () => {
        tryCount++
        return Promise.reject(new PortError('event-store', 'unavailable'))
      },
    },
    keeper: { isRestoring: () => false, checkAtStart: async () => undefined } as never,
    lease: { leave: async () => undefined },
    schedules: [],
    logger: createLogger({ level: 'info', process: 'work' }, { write: line => void lines.push(line) }),
    onStateChange: () => undefined,
    random: () => 0.5,
  })
  const running = worker.run(stopping.signal)
  let passedMs = 0
  const pass = async (untilMs: number) => {
    for (; passedMs < untilMs; passedMs += 50) {
      await new Promise(setImmediate)
      t.mock.timers.tick(50)
    }
  }
  await pass(8_000)
  assert.ok(tryCount > 5)
  assert.deepEqual(lines, [])
  await pass(20_000)
  assert.deepEqual(
    lines.map(line => JSON.parse(line).msg),
    ['processing is waiting for the event store'],
  )
  stopping.abort()
  assert.equal(await running, 'stopped')
})
