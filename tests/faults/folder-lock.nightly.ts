// The lock of a data folder, with real instances where process ids prove nothing: in containers, which number processes
// from 1 again, under a process 1 that does not reap children, and with processes that outlive a killed front.

import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { acquireDataLock } from '../../src/processes/data-lock.ts'
import { childProcessesOf, collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, startPennonFor } from '../support/pennon.ts'
import { startCommand } from '../support/pennon-command.ts'
import { registerProcess } from '../support/processes-in-folders.ts'
import { refusedStart } from '../support/refused-start.ts'
import { tempDir } from '../support/temp-dir.ts'

/** A container: its first process has pid 1, and all others end with it. */
const container = ['unshare', ...(process.getuid?.() === 0 ? [] : ['-r']), '-pf', '--mount-proc', '--kill-child']

async function start(t: TestContext, dataFolder: string, launcher: readonly string[]): Promise<Pennon> {
  const pennon = await startPennonFor(t, { dataFolder, launcher })
  return pennon
}

function lockedPid(dataFolder: string): number {
  return (JSON.parse(readFileSync(join(dataFolder, 'lock'), 'utf8')) as { pid: number }).pid
}

// Run concurrently, since a refused start waits up to 30 s.
describe('a data folder', { concurrency: true }, () => {
  it('is refused while a container uses it, and is free for a new container that reuses every pid', async t => {
    const dataFolder = tempDir(t)
    const first = await start(t, dataFolder, container)
    assert.equal(lockedPid(dataFolder), 1)
    const line = await refusedStart(dataFolder, {}, { launcher: container })
    assert.match(line, /in use by process 1 of another container or host \(.+\)\. Stop that, or set PENNON_DATA/)
    await first.killTree()
    assert.equal(lockedPid(dataFolder), 1, 'the file outlives the kill')
    const second = await start(t, dataFolder, container)
    assert.ok(!second.output().includes('the data folder is in use'), second.output())
  })

  it('is free again after its processes were killed, even if process 1 leaves them as zombies', async t => {
    const dataFolder = tempDir(t)
    const first = await start(t, dataFolder, [...container, 'sh', '-c', '"$@" & exec sleep 600', 'sh'])
    const [processOne] = childProcessesOf(first.pid)
    const [serve] = childProcessesOf(processOne!)
    const killed = [serve!, ...childProcessesOf(serve!)]
    assert.equal(killed.length, 3)
    for (const pid of killed) process.kill(pid, 'SIGKILL')
    const isZombie = (pid: number) => /^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    await eventually(() => killed.every(isZombie), { what: 'the zombies' })
    const second = await start(t, dataFolder, [
      ...['nsenter', `--target=${processOne}`, '--pid', '--mount', `--wdns=${process.cwd()}`],
    ])
    assert.ok(killed.every(isZombie), 'the zombies were there all the time')
    assert.ok(!second.output().includes('the data folder is in use'), second.output())
  })

  it('stays locked while child processes of a killed front run, and under its next owner even without lock files', async t => {
    const dataFolder = tempDir(t)
    const first = await start(t, dataFolder, [])
    const { work, events } = first.childPids()
    for (const pid of [work!, events!]) process.kill(pid, 'SIGSTOP')
    process.kill(first.pid, 'SIGKILL')
    const line = await refusedStart(dataFolder)
    assert.match(line, /in use by child processes of a killed instance: process/)
    for (const named of [`process ${work} (work)`, `process ${events} (events)`]) assert.ok(line.includes(named), line)

    process.kill(work!, 'SIGCONT')
    const starting = startPennon({ dataFolder })
    process.kill(events!, 'SIGCONT')
    t.after(async () => (await starting).killTree())
    await assertKeptWithoutLockFiles(await starting)
  })

  it('makes an instance that starts wait while a backup uses the folder', async t => {
    const dataFolder = tempDir(t)
    const backup = await acquireDataLock(dataFolder, { command: 'backup', waitMsMax: 0 })
    assert.ok(backup.ok)
    t.after(() => backup.value.release())
    const { child } = startCommand({ PENNON_DATA: dataFolder, PORT: '0', PENNON_LOG_LEVEL: 'warn' }, 'serve')
    registerProcess(dataFolder, child)
    const output = collectText(child.stdout!)
    await eventually(() => output().includes(`process ${process.pid} (pennon backup); waiting until it ends`))
    backup.value.release()
    await eventually(() => output().includes('serving on'))
  })
})

/** Removes the lock files: the instance keeps its folder and runs until it is stopped. */
async function assertKeptWithoutLockFiles(pennon: Pennon): Promise<void> {
  for (const name of ['lock.db', 'children.db']) rmSync(join(pennon.dataFolder, name))
  await eventually(() => pennon.output().includes('lock.db was removed or replaced while in use'))
  assert.match(await refusedStart(pennon.dataFolder), new RegExp(`in use by process ${pennon.pid} \\(pennon serve\\)`))
  assert.equal((await pennon.capture('after')).status, 200)
  await pennon.caughtUp()
  assert.equal(await pennon.stop(), 0)
}
