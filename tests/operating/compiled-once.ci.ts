// Compiled code is cached on disk (`bin/preload.js`) for later starts of every process. V8 rejects the cache when its
// flags differ from those at compilation, and compiling again takes a tenth of a start.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { startPennon } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

it('the second start uses all code that the first one compiled', async t => {
  const cache = tempDir(t)
  const start = async () => {
    const pennon = await startPennon({ settings: { NODE_COMPILE_CACHE: cache } })
    assert.equal(await pennon.stop(), 0)
    // Cache files are replaced, never changed in place.
    return new Map(globSync('*/*', { cwd: cache }).map(path => [path, statSync(join(cache, path)).ino]))
  }
  const first = await start()
  assert.ok(first.size > 500, `${first.size} compiled`)
  const second = await start()
  const again = [...second].filter(([path, ino]) => first.has(path) && first.get(path) !== ino)
  assert.equal(again.length, 0, `${again.length} of ${first.size} compiled again`)
})

it('the compile cache is not accessible to other users, whatever the umask', t => {
  const folder = tempDir(t)
  mkdirSync(join(folder, 'bin'))
  copyFileSync('bin/preload.js', join(folder, 'bin/preload.mjs'))
  execFileSync('sh', ['-c', 'umask 0 && "$0" --import ./bin/preload.mjs -e 0', process.execPath], {
    cwd: folder,
    env: { ...process.env, NODE_COMPILE_CACHE: undefined },
  })
  const cache = join(folder, 'node_modules/.cache/pennon')
  assert.equal(statSync(cache).mode & 0o777, 0o700)
  assert.equal(readdirSync(cache).length, 1)
})
