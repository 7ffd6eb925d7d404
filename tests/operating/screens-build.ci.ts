// When a start builds the screens, and what it does where they cannot be built.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { type Scope, tempDir } from '../support/temp-dir.ts'

/** A user who may write nowhere here; none is needed where the tests do not run as root. */
const asNobody = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []

function cloneOf(t: Scope) {
  const root = join(tempDir(t), 'clone')
  for (const path of ['package.json', 'package-lock.json', 'tsconfig.json', '.npmrc', 'scripts', 'src', 'web'])
    cpSync(path, join(root, path), {
      recursive: true,
      preserveTimestamps: true,
      filter: source => source !== join('web', 'dist'),
    })
  symlinkSync(realpathSync('node_modules'), join(root, 'node_modules'))
  const ensure = (as: readonly string[] = [], ...options: string[]) => {
    const command = [...as, process.execPath, 'scripts/ensure-screens.mjs', '--production', '--keep', ...options]
    const { status, stderr } = spawnSync(command[0]!, command.slice(1), { cwd: root, encoding: 'utf8' })
    return { status, stderr }
  }
  const current = (): { stamp: string; sources: string[] } =>
    JSON.parse(readFileSync(join(root, 'web/dist/current.json'), 'utf8'))
  return { root, ensure, current }
}

describe('a start of a clone', () => {
  it('builds the screens when a source has changed, and at no other start', t => {
    const { root, ensure, current } = cloneOf(t)
    assert.deepEqual(ensure(), { status: 0, stderr: 'pennon: building the screens …\n' })
    const first = current()
    assert.ok(first.sources.includes('src/core/json.ts'), 'the screens share code with the server')
    assert.ok(existsSync(join(root, 'web/dist', first.stamp, 'index.html')))
    assert.deepEqual(ensure(), { status: 0, stderr: '' })

    const changes = ['web/src/looks/tokens.css', 'src/core/json.ts', 'package-lock.json']
    const stamps = changes.map(path => {
      appendFileSync(join(root, path), '\n')
      assert.match(ensure().stderr, /building the screens/, path)
      return current().stamp
    })
    assert.equal(new Set([first.stamp, ...stamps]).size, 4)
    // Open tabs still use the builds before the newest one.
    const kept = readdirSync(join(root, 'web/dist')).filter(name => name !== 'current.json')
    assert.deepEqual(kept.sort(), stamps.sort())

    appendFileSync(join(root, 'src/main.ts'), '\n')
    assert.doesNotMatch(ensure().stderr, /building/)
  })

  it('goes on without screens where they cannot be built, and says how to build them', t => {
    const { root, ensure } = cloneOf(t)
    // The folder above is for its owner alone.
    chmodSync(dirname(root), 0o755)
    if (asNobody.length === 0) chmodSync(join(root, 'web'), 0o555)
    const refused = ensure(asNobody)
    assert.equal(refused.status, 0)
    assert.match(refused.stderr, /^pennon: the screens could not be built: EACCES.*`npm run ui:build` tries again\.$/m)
    assert.equal(ensure(asNobody, '--required').status, 1)
  })

  it('names the fault of a source that cannot be built, and keeps the build before', t => {
    const { root, ensure, current } = cloneOf(t)
    assert.equal(ensure().status, 0)
    const { stamp } = current()
    appendFileSync(join(root, 'web/src/main.tsx'), '\nconst = 1\n')
    const { status, stderr } = ensure()
    assert.equal(status, 0)
    assert.match(stderr, /the screens could not be built:.*main\.tsx.*`npm run ui:build` tries again/s)
    assert.equal(current().stamp, stamp)
    assert.deepEqual(
      readdirSync(join(root, 'web/dist')).filter(name => name.startsWith('.')),
      [],
    )
  })
})
