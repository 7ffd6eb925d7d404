// What `npm start` installs, and when. Runs the real npm on a project of two packages from a registry on loopback.

import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { addressOf } from '../support/local-server.ts'
import { tempDir } from '../support/temp-dir.ts'

/** Serves the package `fake-node`, whose program prints its version, in any version. 0.0.0 has no program. */
async function startRegistry(t: TestContext) {
  const folder = tempDir(t)
  const fetches: string[] = []
  let held: (() => void)[] | null = null
  let isTampered = false
  const packed = (version: string) => {
    const source = join(folder, version)
    const file = join(folder, `fake-node-${version}.tgz`)
    if (!existsSync(file)) {
      mkdirSync(join(source, 'bin'), { recursive: true })
      const bin = version === '0.0.0' ? {} : { node: 'bin/node' }
      const manifest = { name: 'fake-node', version, bin, scripts: { install: 'touch ran' } }
      writeFileSync(join(source, 'package.json'), JSON.stringify(manifest))
      writeFileSync(join(source, 'bin/node'), `#!/bin/sh\necho ${version}\n`, { mode: 0o755 })
      execFileSync('npm', ['pack', '--loglevel=error', '--pack-destination', folder], { cwd: source })
    }
    return readFileSync(file)
  }
  const server = createServer(async (request, answer) => {
    const version = /fake-node-(.+)\.tgz$/.exec(request.url ?? '')?.[1]
    if (version !== undefined) {
      fetches.push(version)
      if (held !== null) await new Promise<void>(resolve => held?.push(resolve))
      return answer.end(isTampered ? packed('6.6.6') : packed(version))
    }
    const { port } = server.address() as AddressInfo
    const versions = ['0.0.0', '1.0.0', '2.0.0'].map(each => {
      const tarball = `http://127.0.0.1:${port}/fake-node/-/fake-node-${each}.tgz`
      return [each, { name: 'fake-node', version: each, bin: { node: 'bin/node' }, dist: { tarball } }]
    })
    answer.end(
      JSON.stringify({ name: 'fake-node', 'dist-tags': { latest: '2.0.0' }, versions: Object.fromEntries(versions) }),
    )
  })
  return {
    url: `${await addressOf(t, server)}/`,
    integrity: (version: string) => `sha512-${createHash('sha512').update(packed(version)).digest('base64')}`,
    /** How often this version of the package was fetched. */
    fetched: (version: string) => fetches.filter(each => each === version).length,
    /** `true` holds back answers for packages until it is called with `false`. */
    hold: (isHeld: boolean) => {
      for (const release of held ?? []) release()
      held = isHeld ? [] : null
    },
    /** Makes all further packages differ from their hash. */
    tamper: () => {
      isTampered = true
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/**
 * Makes a project that requires version 1.0.0 of the package.
 * @param oldestNode as for `want`.
 */
async function makeProject(t: TestContext, oldestNode?: number) {
  const registry = await startRegistry(t)
  const root = tempDir(t)
  mkdirSync(join(root, 'scripts'))
  copyFileSync('scripts/ensure-installed.mjs', join(root, 'scripts/ensure-installed.mjs'))
  writeFileSync(
    join(root, '.npmrc'),
    `registry=${registry.url}\nomit-lockfile-registry-resolved=true\naudit=false\nupdate-notifier=false\nfetch-retries=0\n`,
  )
  const env = { PATH: process.env.PATH, HOME: root, npm_config_cache: join(root, '.cache') }
  // Does not block this process, which runs the registry.
  const npm = async (...args: string[]) =>
    void (await promisify(execFile)('npm', args, { cwd: root, env, timeout: 240_000 }))
  const script = ['scripts/ensure-installed.mjs', '--production']
  const start = (command: string, ...args: string[]) => {
    const child = spawn(command, args, { ...{ cwd: root, env, detached: true }, stdio: ['ignore', 'pipe', 'pipe'] })
    const output = collectText(child.stdout, child.stderr)
    t.after(() => killGroup(child.pid!))
    const ended = new Promise<{ code: number | null; output: string }>(resolve =>
      child.once('close', code => resolve({ code, output: output() })),
    )
    return { pid: child.pid!, output, ended }
  }
  const project = {
    registry,
    root,
    npm,
    /**
     * Makes the project require another version of the package. If `oldestNode` is given, the package is optional, like
     * those that provide Node, and another one without a program is required.
     */
    want: (version: string, oldestNode?: number) => {
      const packages = { 'fake-node': version }
      const named = {
        name: 'p',
        ...(oldestNode === undefined
          ? { dependencies: packages }
          : {
              dependencies: { plain: 'npm:fake-node@0.0.0' },
              optionalDependencies: packages,
              engines: { node: `>=${oldestNode}` },
            }),
      }
      const allowScripts = { 'fake-node': false }
      const locked = {
        version,
        integrity: registry.integrity(version),
        hasInstallScript: true,
        bin: { node: 'bin/node' },
        ...(oldestNode !== undefined && { optional: true }),
      }
      const plain = { name: 'fake-node', version: '0.0.0', integrity: registry.integrity('0.0.0') }
      const others = oldestNode === undefined ? {} : { 'node_modules/plain': plain }
      const lock = {
        name: 'p',
        lockfileVersion: 3,
        packages: { '': named, 'node_modules/fake-node': locked, ...others },
      }
      writeFileSync(join(root, 'package.json'), JSON.stringify({ ...named, allowScripts }))
      writeFileSync(join(root, 'package-lock.json'), JSON.stringify(lock))
    },
    /** Runs the script as an npm script does. */
    ensure: (...options: string[]) => start(process.execPath, ...script, ...options),
    /** The same on a terminal. */
    onTerminal: () => start('script', '-qec', [`'${process.execPath}'`, ...script].join(' '), '/dev/null'),
    /** The output of the installed program, or null when none is installed. */
    installedVersion: () => {
      const program = join(root, 'node_modules/.bin/node')
      return existsSync(program) ? execFileSync(program, { encoding: 'utf8' }).trim() : null
    },
    /** Temporary files of an installation. */
    leftovers: () => readdirSync(root).filter(name => name.startsWith('.installing')),
  }
  project.want('1.0.0', oldestNode)
  return project
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (cause) {
    if ((cause as { code?: string }).code !== 'ESRCH') throw cause
  }
}

describe('a start', () => {
  it('packages of the lock file are installed without running their scripts, and not installed twice', async t => {
    const project = await makeProject(t)
    assert.equal((await project.ensure().ended).code, 0)
    assert.equal(project.installedVersion(), '1.0.0')
    assert.equal(existsSync(join(project.root, 'node_modules/fake-node/ran')), false)
    project.registry.close()
    assert.deepEqual(await project.ensure().ended, { code: 0, output: '' })
    assert.deepEqual(project.leftovers(), [])
  })

  it('a terminal shows the elapsed time, since npm shows no progress', async t => {
    const project = await makeProject(t)
    project.registry.hold(true)
    const running = project.onTerminal()
    await eventually(() => /still installing, [2-9] s so far/.test(running.output()), {
      what: 'the message after two seconds',
    })
    assert.equal(project.installedVersion(), null)
    project.registry.hold(false)
    const { code, output } = await running.ended
    assert.equal(code, 0, output)
    assert.equal(project.installedVersion(), '1.0.0')
  })

  it('the engines field does not prevent the installation of Node, even with engine-strict', async t => {
    const project = await makeProject(t)
    for (const file of ['package.json', 'package-lock.json'].map(name => join(project.root, name))) {
      const content = JSON.parse(readFileSync(file, 'utf8'))
      Object.assign(content.packages?.[''] ?? content, { engines: { node: '>=99' } })
      writeFileSync(file, JSON.stringify(content))
    }
    appendFileSync(join(project.root, '.npmrc'), 'engine-strict=true\n')
    const { code, output } = await project.ensure().ended
    assert.equal(code, 0, output)
    assert.doesNotMatch(output, /EBADENGINE|engine/i)
    assert.equal(project.installedVersion(), '1.0.0')
  })

  it('packages installed with `npm ci` are accepted without a network', async t => {
    const project = await makeProject(t)
    await project.npm('ci')
    project.registry.close()
    assert.deepEqual(await project.ensure().ended, { code: 0, output: '' })
  })

  it("optional packages omitted with `npm ci` stay omitted after an update if the user's Node is new enough", async t => {
    const ownNode = Number.parseInt(process.versions.node, 10)
    const project = await makeProject(t, ownNode)
    await project.npm('ci', '--omit=optional')
    mkdirSync(join(project.root, 'bin'))
    mkdirSync(join(project.root, 'src'))
    copyFileSync('bin/pennon', join(project.root, 'bin/pennon'))
    copyFileSync('scripts/ensure-screens.mjs', join(project.root, 'scripts/ensure-screens.mjs'))
    writeFileSync(join(project.root, 'bin/preload.js'), '')
    writeFileSync(join(project.root, 'src/main.ts'), 'console.log(process.version, ...process.argv.slice(2))')
    const pennon = async () =>
      (await promisify(execFile)('sh', [join(project.root, 'bin/pennon'), 'serve'], { timeout: 60_000 })).stdout
    assert.equal(await pennon(), `${process.version} serve\n`)
    project.want('2.0.0', ownNode)
    assert.equal(await pennon(), `${process.version} serve\n`)
    assert.equal(project.installedVersion(), null)
    assert.equal(project.registry.fetched('2.0.0'), 0)

    project.want('2.0.0', ownNode + 1)
    assert.equal((await project.ensure().ended).code, 0)
    assert.equal(project.installedVersion(), '2.0.0')
  })

  it("a first installation includes optional packages even if the user's Node is new enough", async t => {
    const project = await makeProject(t, 20)
    assert.equal((await project.ensure().ended).code, 0)
    assert.equal(project.installedVersion(), '1.0.0')
    project.want('2.0.0', 20)
    assert.equal((await project.ensure().ended).code, 0)
    assert.equal(project.installedVersion(), '2.0.0')
  })

  it('the old packages stay until the new packages are complete, even after a kill', async t => {
    const project = await makeProject(t)
    await project.ensure().ended
    project.want('2.0.0')
    project.registry.hold(true)
    const killed = project.ensure()
    await eventually(() => project.registry.fetched('2.0.0') > 0, { what: 'the fetch' })
    assert.equal(project.installedVersion(), '1.0.0')
    killGroup(killed.pid)
    await killed.ended
    project.registry.hold(false)
    assert.equal(project.installedVersion(), '1.0.0')
    assert.equal(project.leftovers().length, 2, 'the kill left temporary files')

    assert.equal((await project.ensure().ended).code, 0)
    assert.equal(project.installedVersion(), '2.0.0')
    assert.deepEqual(project.leftovers(), [])
  })

  it('a folder that an installation created just before it was killed is removed', async t => {
    const project = await makeProject(t)
    const script = `
      import fs from 'node:fs'
      import { syncBuiltinESMExports } from 'node:module'
      for (const name of ['mkdirSync', 'mkdtempSync']) {
        const make = fs[name]
        fs[name] = (...args) => {
          make(...args)
          process.kill(process.pid, 'SIGKILL')
        }
      }
      syncBuiltinESMExports()
      await import('./ensure-installed.mjs')`
    writeFileSync(join(project.root, 'scripts/killed.mjs'), script)
    const killed = spawnSync(process.execPath, ['scripts/killed.mjs', '--production'], { cwd: project.root })
    assert.equal(killed.signal, 'SIGKILL')
    assert.equal(project.leftovers().length, 2, 'a lock and a folder')

    assert.equal((await project.ensure().ended).code, 0)
    assert.equal(project.installedVersion(), '1.0.0')
    assert.deepEqual(project.leftovers(), [])
  })

  it('a lock left by a process whose pid was reused does not block the installation', async t => {
    const project = await makeProject(t)
    writeFileSync(join(project.root, '.installing'), String(process.pid))
    assert.equal((await project.ensure().ended).code, 0)
    assert.equal(project.installedVersion(), '1.0.0')
    assert.deepEqual(project.leftovers(), [])
  })

  it('the old packages are restored after a kill between the two renames of an installation', async t => {
    const project = await makeProject(t)
    await project.ensure().ended
    const folder = join(project.root, '.installing-abc123')
    mkdirSync(folder)
    execFileSync('mv', [join(project.root, 'node_modules'), join(folder, 'replaced')])
    writeFileSync(join(project.root, '.installing'), JSON.stringify({ folder: '.installing-abc123', beat: 7 }))
    project.registry.close()
    assert.equal((await project.ensure().ended).code, 0)
    assert.equal(project.installedVersion(), '1.0.0')
    assert.deepEqual(project.leftovers(), [])
  })

  it('two simultaneous installations install only once', async t => {
    const project = await makeProject(t)
    project.registry.hold(true)
    const both = [project.ensure(), project.ensure()]
    await eventually(() => both.some(each => each.output().includes('waiting')), { what: 'the second to wait' })
    await eventually(() => project.registry.fetched('1.0.0') > 0, { what: 'the fetch' })
    project.registry.hold(false)
    for (const { ended } of both) assert.equal((await ended).code, 0)
    assert.equal(project.registry.fetched('1.0.0'), 1)
    assert.deepEqual(project.leftovers(), [])
  })

  it('packages that differ from the lock file are refused, and the old packages stay installed', async t => {
    const project = await makeProject(t)
    await project.ensure().ended
    project.want('2.0.0')
    project.registry.tamper()
    execFileSync('rm', ['-r', join(project.root, '.cache')])
    const { code, output } = await project.ensure().ended
    assert.equal(code, 2)
    assert.match(output, /EINTEGRITY/)
    assert.equal(project.installedVersion(), '1.0.0')
    assert.deepEqual(project.leftovers(), [])
  })

  it('an interrupted installation removes its temporary files', async t => {
    const project = await makeProject(t)
    project.registry.hold(true)
    const asked = project.ensure()
    await eventually(() => project.registry.fetched('1.0.0') > 0, { what: 'the fetch' })
    process.kill(asked.pid, 'SIGTERM')
    const { code, output } = await asked.ended
    assert.equal(code, 2)
    assert.match(output, /the installation was interrupted; nothing was changed/)
    assert.doesNotMatch(output, /network/)
    assert.deepEqual(project.leftovers(), [])
  })
})

describe('a command next to a running instance', () => {
  it('installed packages are left unchanged, with a notice if they are of another version', async t => {
    const project = await makeProject(t)
    await project.ensure().ended
    const before = statSync(join(project.root, 'node_modules')).ino
    project.want('2.0.0')
    const { code, output } = await project.ensure('--keep').ended
    assert.equal(code, 0)
    assert.match(output, /other versions of packages are installed; `npm start`/)
    assert.equal(statSync(join(project.root, 'node_modules')).ino, before)
  })

  it('missing packages are installed', async t => {
    const project = await makeProject(t)
    assert.equal((await project.ensure('--keep').ended).code, 0)
    assert.equal(project.installedVersion(), '1.0.0')
  })
})
