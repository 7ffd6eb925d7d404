import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { acquireSharedFileLock } from '#processes/data-lock.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { removeAbandonedFrozenFiles } from './freeze-event-store.ts'

// Frozen files were once named after the process id of their backup. If another process got that id, the files were never
// removed; and a backup in another container lost its files, since its id did not exist here.

const lockModule = fileURLToPath(new URL('../../processes/data-lock.ts', import.meta.url))

describe('frozen copies of event files', () => {
  it('are removed when no backup runs, even if their names contain the id of a running process', t => {
    const { dataFolder, frozen } = withFreezes(t, `backup_${process.pid}`, 'backup_1', 'backup_0f3c')
    removeAbandonedFrozenFiles(dataFolder)
    assert.deepEqual(frozen(), [])
  })

  it('stay while a backup runs, and are removed after it was killed', async t => {
    const { dataFolder, frozen } = withFreezes(t, 'backup_999999999')
    const path = join(dataFolder, 'backups.db')
    const code = `import * as lock from ${JSON.stringify(lockModule)}; globalThis.held = lock.acquireSharedFileLock(${JSON.stringify(path)}); console.log('held'); setInterval(() => {}, 1e6)`
    const backup = spawn(process.execPath, ['--input-type=module', '--eval', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    })
    t.after(() => backup.kill('SIGKILL'))
    await once(backup.stdout, 'data')
    const another = acquireSharedFileLock(path)
    removeAbandonedFrozenFiles(dataFolder)
    assert.deepEqual(frozen(), ['backup_999999999'])
    another()
    removeAbandonedFrozenFiles(dataFolder)
    assert.deepEqual(frozen(), ['backup_999999999'])
    backup.kill('SIGKILL')
    await once(backup, 'exit')
    removeAbandonedFrozenFiles(dataFolder)
    assert.deepEqual(frozen(), [])
  })

  it('of other programs are not touched, and nothing is written if there are no copies to remove', t => {
    const { dataFolder, frozen } = withFreezes(t, 'mine')
    removeAbandonedFrozenFiles(dataFolder)
    assert.deepEqual([frozen(), readdirSync(dataFolder)], [['mine'], ['events']])
  })
})

function withFreezes(t: TestContext, ...names: readonly string[]) {
  const dataFolder = tempDir(t)
  const shadow = join(dataFolder, 'events', 'store', 'shadow')
  for (const name of names) {
    mkdirSync(join(shadow, name), { recursive: true })
    writeFileSync(join(shadow, name, 'part'), 'x')
  }
  return { dataFolder, frozen: () => readdirSync(shadow).sort() }
}
