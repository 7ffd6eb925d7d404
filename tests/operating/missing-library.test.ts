// Without a system library that Node needs, a start used to fail with only a message of the loader.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { tempDir } from '../support/temp-dir.ts'

it('the installer names the package to install when a system library that Node needs is missing', {
  skip: process.platform !== 'linux',
}, t => {
  const root = tempDir(t)
  for (const folder of ['scripts', 'node_modules/.bin']) mkdirSync(join(root, folder), { recursive: true })
  copyFileSync('scripts/ensure-installed.mjs', join(root, 'scripts', 'ensure-installed.mjs'))
  const lock = JSON.stringify({ packages: { '': {} } })
  for (const path of ['package-lock.json', 'node_modules/.package-lock.json']) writeFileSync(join(root, path), lock)
  const node = join(root, 'node_modules', '.bin', 'node')
  const ensureInstalled = (script: string) => {
    writeFileSync(node, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
    const ended = spawnSync(process.execPath, [join(root, 'scripts', 'ensure-installed.mjs')], { encoding: 'utf8' })
    return [ended.status, ended.stderr] as const
  }
  const missing = (library: string) =>
    `echo "node: error while loading shared libraries: ${library}: cannot open shared object file" >&2; exit 127`
  const [status, stderr] = ensureInstalled(missing('libatomic.so.1'))
  assert.equal(status, 2)
  assert.match(stderr, /^pennon: this system lacks libatomic\.so\.1, .*`apt-get install libatomic1`.*\n$/)
  assert.match(ensureInstalled(missing('libother.so.3'))[1], /package of your system that has libother\.so\.3/)
  assert.deepEqual(ensureInstalled('echo v26.10.0'), [0, ''])
})
