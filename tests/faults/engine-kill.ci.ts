import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { describe, it } from 'node:test'
import { createClickHouseEventStore } from '../../src/adapters/clickhouse/clickhouse-event-store.ts'
import { collectText } from '../support/child-processes.ts'
import { startEngineForTests } from '../support/engine.ts'
import { eventually } from '../support/eventually.ts'
import { testSeed } from '../support/seeded-random.ts'
import { aStoredEvent } from '../support/values.ts'
import { killEngineRounds } from './engine-rounds.ts'

describe('the embedded engine', () => {
  it('keeps every acknowledged row despite kills during inserts', async t => {
    const seed = testSeed()
    t.diagnostic(`seed ${seed}`)
    assert.ok((await killEngineRounds(5, seed)) > 0)
  })

  it("the engine ignores signals while its parent lives, and stops without loss on the parent's message", async t => {
    const engine = await startEngineForTests(t)
    const store = createClickHouseEventStore({ endpoint: engine.endpoint, clock: { nowMs: Date.now } })
    t.after(() => store.close())
    await store.migrate()
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) engine.child.kill(signal)
    const event = aStoredEvent()
    await store.insert({ events: [event], pendingEvents: [], overrides: [], recordings: [], rejected: [] })
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) engine.child.kill(signal)
    await store.countRejected({ projectId: 1 })
    assert.equal(engine.child.exitCode, null)

    const { child } = engine
    child.send({ type: 'shutdown' })
    const [exitCode, signal] = (await once(child, 'exit')) as [number | null, string | null]
    assert.deepEqual([exitCode, signal], [0, null])

    await engine.restart()
    assert.equal((await store.findEvent({ projectId: 1 }, event.uuid))?.uuid, event.uuid) // at the new port and with the new passwords
  })

  it('stops when its parent is killed, so that the folder is free', async t => {
    const parent = fork(new URL('../support/engine-parent.ts', import.meta.url))
    t.after(() => parent.kill('SIGKILL'))
    const [{ pid, dataFolder }] = (await once(parent, 'message')) as [{ pid: number; dataFolder: string }]
    t.after(() => rmSync(dataFolder, { recursive: true, force: true }))
    assert.equal(titleOf(pid), 'pennon events')
    parent.kill('SIGKILL')
    await eventually(() => titleOf(pid) === null, { what: 'The end of the engine' })
  })

  it('exits with a failure and the reason if another engine holds the folder, and does not affect that engine', async t => {
    const engine = await startEngineForTests(t)
    const folder = `${engine.dataFolder}/events`
    const second = fork(new URL('../support/engine-child.ts', import.meta.url), [folder, '1'], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    t.after(() => second.kill('SIGKILL'))
    const errors = collectText(second.stderr!)
    const [exitCode, signal] = (await once(second, 'close')) as [number | null, string | null]
    t.diagnostic(`it ended with ${signal ?? exitCode}`)
    // When its query fails, libchdb shuts down in its own thread while our process exits. Sometimes that thread crashes
    // first with a signal: then only our last line is missing.
    assert.notEqual(exitCode, 0)
    assert.match(errors(), /Cannot lock file/)
    if (signal === null) assert.match(errors(), /pennon events: the engine ended/)
    const store = createClickHouseEventStore({ endpoint: engine.endpoint, clock: { nowMs: Date.now } })
    t.after(() => store.close())
    await store.migrate()
  })
})

/** The title of a running process, or null; on Linux from /proc, where a zombie's is empty. */
function titleOf(pid: number): string | null {
  const path = `/proc/${pid}/cmdline`
  if (!existsSync(path)) return null
  return readFileSync(path, 'utf8').replaceAll('\0', ' ').trim() || null
}
