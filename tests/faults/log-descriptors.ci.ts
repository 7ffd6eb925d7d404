// The log's writer at its process's limit of open files: an append that needs another file is refused until a
// descriptor is free again. This test has a separate file, since the limit applies to the process.

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { PortError } from '#ports/port-error.ts'
import { readAll } from '../ports/event-log.contract.ts'
import { eventually } from '../support/eventually.ts'
import { openedReader, openedWriter } from '../support/sqlite-log-files.ts'
import { aCapturedEvent, encodedEvents } from '../support/values.ts'

test('events are refused while no file can be opened, and accepted again once files can be opened', async t => {
  if (process.platform !== 'linux') return t.skip('the limit of a running process can be set only on Linux')
  const softLimit = /Max open files\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))![1]!
  // Started in advance: at the limit, no process can be started.
  const restorer = spawn('sh', ['-c', `read -r line; prlimit --pid ${process.pid} --nofile=${softLimit}:`], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  const restored = once(restorer, 'exit')
  const restore = async () => {
    restorer.stdin.end('\n')
    await restored
  }
  t.after(restore)
  const { folder, writer } = await openedWriter(t, { segmentBytesMax: 100_000 })
  let accepted = 0
  const append = async () => {
    const propertiesJson = JSON.stringify({ pad: 'x'.repeat(20_000) })
    await writer.append('live', encodedEvents([aCapturedEvent(accepted, { propertiesJson })]))
    accepted++
  }
  await append()
  // Open descriptors stay open; every further one is refused.
  execFileSync('prlimit', ['--pid', String(process.pid), '--nofile=3:'])
  let refused: unknown
  for (let n = 0; n < 50 && refused === undefined; n++) await append().catch(error => (refused = error))
  assert.ok(refused instanceof PortError && refused.code === 'unavailable', String(refused))
  // Failing checks are repeated once a second; none of them may end the thread.
  await eventually(() => writer.getCondition().state === 'unavailable')
  await assert.rejects(append(), { code: 'unavailable' })
  await restore()
  await eventually(() => writer.getCondition().state === 'ok')
  await append()
  assert.equal((await readAll(openedReader(t, folder), 'main', 100)).length, accepted)
})
