// The embedded engine is stopped (SIGSTOP), as by a debugger, a paused container or a swapping machine: it keeps its
// port and accepts connections but never answers.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { childProcessesOf } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { startPennonFor, testPersonalKey } from '../support/pennon.ts'

it('a suspended engine is replaced, and events accepted in the meantime are stored', async t => {
  const pennon = await startPennonFor(t)
  assert.equal((await pennon.capture('before')).status, 200)
  await pennon.caughtUp()
  const stopped = pennon.childPids().events!
  process.kill(stopped, 'SIGSTOP')
  const stoppedAt = performance.now()
  assert.equal((await pennon.capture('meanwhile')).status, 200)
  await eventually(() => (pennon.childPids().events ?? stopped) !== stopped, {
    what: 'a new engine',
  })
  t.diagnostic(`replaced after ${Math.round(performance.now() - stoppedAt)} ms`)
  await eventually(async () => (await pennon.eventNames()).length === 2, { what: 'both events' })
  assert.match(pennon.output(), /no longer responds/)
})

it('no process gets a secret that it does not use', async t => {
  const encryptionKey = 'ab'.repeat(32)
  const pennon = await startPennonFor(t, {
    settings: {
      PENNON_FRONT_PROCESSES: '2',
      PENNON_ENCRYPTION_KEY: encryptionKey,
      AWS_SECRET_ACCESS_KEY: 'aws-secret',
    },
  })
  const { events, work } = pennon.childPids()
  const environmentOf = (pid: number) => readFileSync(`/proc/${pid}/environ`, 'utf8')
  for (const secret of [testPersonalKey, encryptionKey, 'aws-secret']) {
    assert.ok(environmentOf(pennon.pid).includes(secret))
    assert.ok(!environmentOf(events!).includes(secret), 'the engine')
  }
  for (const secret of [testPersonalKey, encryptionKey]) assert.ok(!environmentOf(work!).includes(secret), 'the worker')
  const fronts = childProcessesOf(pennon.pid).filter(pid => pid !== events && pid !== work)
  assert.equal(fronts.length, 2)
  for (const pid of fronts) assert.ok(!environmentOf(pid).includes(testPersonalKey), 'a front')
})
