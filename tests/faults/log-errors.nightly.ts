// The log on a failing disk: events are refused, readiness reports it and flags still work; after the repair, events
// are accepted again without a restart.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennonFor } from '../support/pennon.ts'
import { hasStrace } from '../support/strace.ts'

test('failing syncs are reported by readiness checks and once a minute in the output, and a stop still exits with 0', async t => {
  if (!hasStrace()) return t.skip('strace is not installed: apt-get install strace')
  const pennon = await startPennonFor(t, { settings: { PENNON_LOG_LEVEL: 'error' } })
  assert.equal(await capture(pennon), 200)
  let tracer = await failSyncs(pennon.pid)
  t.after(() => tracer.kill('SIGKILL'))
  await eventually(async () => (await capture(pennon)) === 503)
  const refused = await Promise.all(Array.from({ length: 20 }, () => capture(pennon)))
  assert.deepEqual(new Set(refused), new Set([503]))
  const readiness = () => pennon.readiness('?require=capture')
  const { status, capture: reason } = await readiness()
  assert.deepEqual([status, reason], [503, 'log_unavailable'])
  assert.equal((await pennon.decide()).status, 200)
  const lines = pennon
    .output()
    .split('\n')
    .filter(line => /a commit failed|cannot accept/.test(line))
  assert.ok(lines.length >= 1 && lines.length <= 4, `${lines.length} lines of 21 refused requests`)

  await endOf(tracer)
  await eventually(async () => (await readiness()).capture === 'ok', { what: 'recovery without requests' })
  assert.equal(await capture(pennon), 200)

  tracer = await failSyncs(pennon.pid)
  await eventually(async () => (await capture(pennon)) === 503)
  process.kill(pennon.pid, 'SIGTERM')
  assert.equal(await pennon.stop(), 0)
})

async function capture(pennon: Pennon): Promise<number> {
  return (await pennon.capture('probe')).status
}

/** Makes each sync of the process fail, as a failing disk would. */
async function failSyncs(pid: number): Promise<ChildProcess> {
  const tracer = spawn(
    'strace',
    [
      '-f',
      '-p',
      String(pid),
      '-e',
      'trace=fdatasync,fsync',
      '-e',
      'inject=fdatasync,fsync:error=EIO',
      '-o',
      '/dev/null',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const traceOutput = collectText(tracer.stderr!)
  await eventually(() => traceOutput().includes('attached'), { what: `strace (${traceOutput()})` })
  return tracer
}

async function endOf(tracer: ChildProcess): Promise<void> {
  const ended = once(tracer, 'exit')
  tracer.kill('SIGINT')
  await ended
}
