// The image without Docker: a folder with what the Dockerfile copies, its command and its health check, run by a user
// who may write only to the data folder. Also checks the systemd unit with systemd.

import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, it } from 'node:test'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { tempDir } from '../support/temp-dir.ts'
import { readDockerfile } from './dockerfile.ts'

/** Drops root privileges; other users need no change. */
const asNobody = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []

describe('the contents of the image', () => {
  it('the service starts, becomes healthy, is backed up and exits with 0, as a user who can write only to the volume', async t => {
    const folder = tempDir(t)
    chmodSync(folder, 0o755)
    const [root, data, temp] = [join(folder, 'opt'), join(folder, 'data'), join(folder, 'tmp')]
    const dockerfile = readDockerfile()
    for (const { sources, target } of dockerfile.copiesOfContext)
      for (const source of sources) cpSync(source, join(root, target === './' ? source : target), { recursive: true })
    symlinkSync(realpathSync('node_modules'), join(root, 'node_modules'))
    for (const own of [data, temp]) {
      mkdirSync(own, { mode: 0o700 })
      if (asNobody.length > 0) chownSync(own, 65534, 65534)
    }
    const env = {
      ...dockerfile.environment,
      PATH: `${join(root, 'node_modules', '.bin')}:/usr/bin:/bin`,
      NODE_COMPILE_CACHE: join(temp, 'compiled'),
      HOST: '127.0.0.1',
      PORT: String(await freePort()),
      PENNON_DATA: data,
    }
    const run = (command: readonly string[]) => [...asNobody, ...command]
    const [program, ...args] = run(dockerfile.command)
    const child = spawn(program!, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
    t.after(() => child.kill('SIGKILL'))
    const output = collectText(child.stdout, child.stderr)
    const exited = new Promise<number | null>(resolve => child.once('exit', resolve))
    const isHealthy = () => {
      const [check, ...checkArgs] = run(dockerfile.healthCommand)
      return spawnSync(check!, checkArgs, { cwd: root, env, stdio: 'ignore' }).status === 0
    }
    assert.equal(isHealthy(), false, 'healthy before it was started')
    await eventually(isHealthy, { what: `the health check (${output()})` })
    const processes = async () =>
      (await fetch(`http://127.0.0.1:${env.PORT}/_readiness?require=processing`)).status === 200
    await eventually(processes, { what: `processing (${output()})` })
    assert.match(output(), /Personal API key {2}phx_/)
    assert.doesNotMatch(output(), /npm |README|docs\//, 'an image has neither npm nor the documentation')
    const [help, ...helpArgs] = run([...dockerfile.command.slice(0, -1), '--help'])
    assert.doesNotMatch(execFileSync(help!, helpArgs, { cwd: root, env, encoding: 'utf8' }), /npm |README|docs\//)

    const file = join(data, 'b.tar')
    const [backup, ...backupArgs] = run([...dockerfile.command.slice(0, -1), 'backup', file])
    execFileSync(backup!, backupArgs, { cwd: root, env })
    assert.match(execFileSync('tar', ['tf', file], { encoding: 'utf8' }), /^state\.db$/m)
    child.kill('SIGTERM')
    assert.equal(await exited, 0, output())
    assert.equal(isHealthy(), false)
  })
})

describe('the systemd unit', () => {
  it('the unit is valid, and restricts the service', t => {
    const folder = tempDir(t)
    const unit = join(folder, 'pennon.service')
    const here = realpathSync('.')
    const text = readFileSync('deploy/pennon.service', 'utf8')
    // This machine lacks the unit's user and folders.
    writeFileSync(unit, text.replaceAll('/opt/pennon', here).replace(/^(User|Group)=pennon$/gm, '$1=root'))
    const verified = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' })
    assert.equal(verified.status, 0, verified.stderr)
    const own = verified.stderr.split('\n').filter(line => line.includes(dirname(unit)))
    assert.deepEqual(own, [])
    const security = spawnSync('systemd-analyze', ['security', '--offline=yes', unit], { encoding: 'utf8' })
    const exposure = Number(/exposure level for .*: ([\d.]+)/.exec(security.stdout)?.[1])
    // The test runs it as root, which raises the exposure.
    assert.ok(exposure < 3, `${exposure}: ${security.stdout.slice(-2000)}`)
  })
})
