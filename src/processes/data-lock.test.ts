import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { collectText } from '../../tests/support/child-processes.ts'
import { eventually } from '../../tests/support/eventually.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { type AcquireOptions, acquireDataLock, readLockHolder } from './data-lock.ts'

const lockModule = fileURLToPath(new URL('./data-lock.ts', import.meta.url))

/** Writes the lock file that a killed instance leaves behind. */
function leaveLockFile(folder: string, pid: number, children: Record<string, number>): void {
  writeFileSync(join(folder, 'lock'), JSON.stringify({ pid, children }))
}

/** Why the folder cannot be locked. */
async function refusal(folder: string, over: Partial<AcquireOptions> = {}): Promise<string> {
  const locked = await acquireDataLock(folder, { command: 'serve', waitMsMax: 0, ...over })
  assert.ok(!locked.ok)
  return locked.error
}

async function takesAtOnce(folder: string): Promise<void> {
  let hasWaited = false
  const locked = await acquireDataLock(folder, {
    command: 'serve',
    waitMsMax: 1_000,
    onWaiting: () => {
      hasWaited = true
    },
  })
  assert.ok(locked.ok, locked.ok ? '' : locked.error)
  locked.value.release()
  assert.equal(hasWaited, false, 'the start waited although no process held the folder')
}

/** Starts a process that runs `code` with the functions of the lock in scope, then prints `done` and stays. */
async function lockingProcess(t: TestContext, code: string): Promise<ChildProcess> {
  const source = `import * as lock from ${JSON.stringify(lockModule)}; ${code}; console.log('done'); setInterval(() => {}, 1e6)`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', source]
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  })
  t.after(() => child.kill('SIGKILL'))
  await Promise.race([
    once(child.stdout!, 'data'),
    once(child, 'exit').then(([exitCode]) => assert.fail(`it ended with ${exitCode}`)),
  ])
  return child
}

const holding = (folder: string, command = 'serve') =>
  `const held = await lock.acquireDataLock(${JSON.stringify(folder)}, { command: '${command}', waitMsMax: 0 }); if (!held.ok) throw new Error(held.error)`
const asChild = (folder: string) => `lock.acquireSharedDataLock(${JSON.stringify(folder)})`

describe('the lock of a data folder', () => {
  it('is free if its file names a process of another program', async t => {
    const folder = tempDir(t)
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)', 'main.ts'], { stdio: 'ignore' })
    t.after(() => other.kill('SIGKILL'))
    leaveLockFile(folder, other.pid!, { work: other.pid! })
    await takesAtOnce(folder)
  })

  it('is free if its file names the starting process, as in a container, where process ids start again', async t => {
    const { title } = process
    process.title = 'pennon serve'
    t.after(() => {
      process.title = title
    })
    const folder = tempDir(t)
    leaveLockFile(folder, process.pid, { work: process.pid })
    await takesAtOnce(folder)
  })

  it('is free if the processes in the lock file have exited but remain as zombies, as may happen in a container', async t => {
    const folder = tempDir(t)
    const dying = `'${process.execPath}' -e "process.title = 'pennon work'; console.log(process.pid)" & exec sleep 60`
    const parent = spawn('sh', ['-c', dying], { stdio: ['ignore', 'pipe', 'ignore'] })
    t.after(() => parent.kill('SIGKILL'))
    const [printed] = await once(parent.stdout!, 'data')
    const zombie = Number(String(printed))
    await eventually(() => /^State:\s*Z/m.test(readFileSync(`/proc/${zombie}/status`, 'utf8')), { what: 'the zombie' })
    leaveLockFile(folder, zombie, { work: zombie, events: zombie })
    await takesAtOnce(folder)
  })

  it('is held while its process lives, and is released however that process dies', async t => {
    const folder = tempDir(t)
    const holder = await lockingProcess(t, holding(folder))
    assert.match(await refusal(folder), new RegExp(`in use by process ${holder.pid} .*PENNON_DATA`))
    assert.equal(readLockHolder(folder)?.pid, holder.pid)

    const patiently = { command: 'serve', waitMsMax: 10_000 } as const
    const taken = await acquireDataLock(folder, { ...patiently, onWaiting: () => holder.kill('SIGKILL') })
    assert.ok(taken.ok)
    taken.value.release()
    assert.equal(readLockHolder(folder), null)
    assert.equal(readLockHolder(join(folder, 'missing')), null)
  })

  it('is refused with a message that an invisible holder is in another container or on another host', async t => {
    const folder = tempDir(t)
    await lockingProcess(t, holding(folder))
    leaveLockFile(folder, process.pid, {})
    assert.match(await refusal(folder), new RegExp(`in use by process ${process.pid} of another container or host`))
  })

  it('is held by children that outlive a killed parent, and the error names them', async t => {
    const folder = tempDir(t)
    await takesAtOnce(folder)
    const child = await lockingProcess(t, asChild(folder))
    leaveLockFile(folder, 2 ** 30, { work: child.pid! })
    assert.match(
      await refusal(folder, { waitMsMax: 100 }),
      new RegExp(`in use by child processes of a killed instance: process ${child.pid} \\(work\\)\\. .*PENNON_DATA`),
    )
    const taken = await acquireDataLock(folder, {
      command: 'serve',
      waitMsMax: 10_000,
      onWaiting: () => child.kill('SIGKILL'),
    })
    assert.ok(taken.ok, 'it takes the folder once the last one has ended')
    taken.value.release()
  })

  it('is shared by children while their parent holds it', async t => {
    const folder = tempDir(t)
    const held = await acquireDataLock(folder, { command: 'serve', waitMsMax: 0 })
    assert.ok(held.ok)
    t.after(() => held.value.release())
    await Promise.all([lockingProcess(t, asChild(folder)), lockingProcess(t, asChild(folder))])
  })

  it('makes a child end if its parent died before the child had locked anything', async t => {
    const folder = tempDir(t)
    const source = `import * as lock from ${JSON.stringify(lockModule)}; ${asChild(folder)}; console.log('goes on')`
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', source],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, NODE_TEST_CONTEXT: undefined, PENNON_SERVE_PID: '1073741824' },
      },
    )
    const output = collectText(child.stdout)
    const [exitCode] = await once(child, 'close')
    assert.deepEqual([exitCode, output()], [0, ''])
  })

  it('leaves no lock file when released', async t => {
    const folder = tempDir(t)
    await takesAtOnce(folder)
    assert.equal(existsSync(join(folder, 'lock')), false)
  })

  it('is awaited while a backup holds it if onCopying is given, and otherwise only as long as requested', async t => {
    const folder = tempDir(t)
    const holder = await lockingProcess(t, holding(folder, 'backup'))
    const busy = await refusal(folder, { command: 'restore' })
    assert.match(busy, new RegExp(`in use by process ${holder.pid} \\(pennon backup\\)\\. Wait until it ends`))
    assert.equal(readLockHolder(folder)?.command, 'backup')
    const lines: string[] = []
    const taken = await acquireDataLock(folder, {
      ...{ command: 'serve', waitMsMax: 0, onWaiting: () => undefined },
      onCopying: line => {
        lines.push(line)
        holder.kill('SIGKILL')
      },
    })
    assert.ok(taken.ok, taken.ok ? '' : taken.error)
    taken.value.release()
    assert.equal(lines.length, 1)
    assert.match(lines[0]!, new RegExp(`process ${holder.pid} \\(pennon backup\\); waiting`))
  })

  it('is taken again if its file was removed while the lock was held', async t => {
    const folder = tempDir(t)
    const held = await acquireDataLock(folder, { command: 'serve', waitMsMax: 0 })
    assert.ok(held.ok)
    t.after(() => held.value.release())
    const lines: string[] = []
    held.value.watch({ retaken: line => lines.push(line), lost: line => assert.fail(line) })
    for (let count = 1; count <= 2; count++) {
      rmSync(join(folder, 'lock.db'))
      await eventually(() => lines.length === count)
      assert.match(lines.at(-1)!, /lock\.db was removed or replaced while in use/)
      await refusal(folder)
    }
  })

  it('is reported as lost, once, if another process has locked a file that replaced the original', async t => {
    const folder = tempDir(t)
    const held = await acquireDataLock(folder, { command: 'serve', waitMsMax: 0 })
    assert.ok(held.ok)
    rmSync(join(folder, 'lock.db'))
    const other = await lockingProcess(t, holding(folder))
    const lines: string[] = []
    held.value.watch({ retaken: line => assert.fail(line), lost: line => lines.push(line) })
    await eventually(() => lines.length > 0)
    assert.match(lines[0]!, new RegExp(`process ${other.pid} \\(pennon serve\\) now uses the data folder`))
    held.value.setChild('work', 1)
    held.value.release()
    assert.equal(readLockHolder(folder)?.pid, other.pid, 'the file names the other')
  })

  it('is still held by a child whose lock file was removed', async t => {
    const folder = tempDir(t)
    await takesAtOnce(folder)
    await lockingProcess(t, asChild(folder))
    rmSync(join(folder, 'children.db'))
    await eventually(async () => {
      const taken = await acquireDataLock(folder, { command: 'serve', waitMsMax: 0 })
      if (taken.ok) taken.value.release()
      return !taken.ok
    })
  })
})
