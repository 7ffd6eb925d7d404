// All files, settings and commands that the Dockerfile, compose.yaml and the systemd unit name exist in this
// repository.

import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { describe, it } from 'node:test'
import packageJson from '../../package.json' with { type: 'json' }
import { readConfig } from '../../src/config.ts'
import { instructionsOf, readDockerfile } from './dockerfile.ts'

const startCommand = packageJson.scripts.start.replace(/^exec node /, '')
const service = readFileSync('deploy/pennon.service', 'utf8')
const compose = readFileSync('compose.yaml', 'utf8')

function settingOf(name: string): string[] {
  return [...service.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(match => match[1]!)
}

describe('the image', () => {
  const dockerfile = readDockerfile()
  const ignored = readFileSync('.dockerignore', 'utf8').split('\n')

  it('the Dockerfile copies exactly the files that the builder receives, and all of them exist', () => {
    const sources = dockerfile.copiesOfContext.flatMap(({ sources }) => sources)
    assert.ok(sources.includes('src') && sources.includes('package-lock.json'))
    for (const source of sources) {
      assert.ok(existsSync(source), `${source} does not exist`)
      assert.ok(ignored.includes(`!${source}`), `${source} is not in .dockerignore`)
    }
    for (const name of ignored.filter(line => line.startsWith('!')).map(line => line.slice(1)))
      assert.ok(sources.includes(name), `${name} is sent to the builder but not copied`)
  })

  it('the image runs the command of `npm start` as an unprivileged user, with one volume', () => {
    assert.deepEqual(dockerfile.command, ['node', ...startCommand.split(' ')])
    assert.match(dockerfile.last('USER'), /^[1-9]\d*:[1-9]\d*$/)
    assert.equal(dockerfile.last('VOLUME'), dockerfile.environment.PENNON_DATA)
    assert.equal(dockerfile.last('EXPOSE'), dockerfile.environment.PORT)
    assert.equal(dockerfile.last('STOPSIGNAL'), 'SIGTERM')
    const { PATH: _, NODE_COMPILE_CACHE: __, ...settings } = dockerfile.environment
    assert.deepEqual(Object.keys(settings).sort(), ['HOST', 'PENNON_DATA', 'PORT'])
    assert.ok(readConfig(settings).ok)
    assert.ok(statSync('scripts/ensure-installed.mjs').isFile())
  })

  it('compose.yaml uses the volume and port of the image, and allows a stop enough time', () => {
    assert.ok(compose.includes(`- pennon-data:${dockerfile.environment.PENNON_DATA}\n`))
    assert.match(compose, new RegExp(`"127\\.0\\.0\\.1:\\d+:${dockerfile.environment.PORT}"`))
    assert.ok(Number(/stop_grace_period: (\d+)s/.exec(compose)![1]) > 10)
    for (const name of compose.match(/\bPENNON_\w+/g) ?? []) assert.ok(readConfig({ [name]: '2' }).ok, name)
    // With a read-only root, files written elsewhere need a tmpfs.
    assert.match(compose, /read_only: true\n {4}tmpfs:\n {6}- \/tmp\n/)
    assert.ok(dockerfile.environment.NODE_COMPILE_CACHE!.startsWith('/tmp/'))
  })

  it('messages to users mention neither npm nor documentation pages, which the image lacks', () => {
    // Exceptions: descriptions in the schema, a program of the caller, and answers that a PostHog client expects.
    const others = ['distribution.ts', 'http/openapi/', 'http/handlers/start-page.ts', 'wire/']
    const files = globSync('src/**/*.ts').filter(
      path => !path.endsWith('.test.ts') && !others.some(other => path.startsWith(`src/${other}`)),
    )
    const naming = (text: string) =>
      text
        .replaceAll(/^\s*(?:\/\/|\/?\*).*$|\s\/\/\s.*$/gm, '')
        .split('\n')
        .filter(line => /\bnpm (?:ci|start|install|run)\b|\bdocs\/|\bREADME\b/.test(line))
    assert.deepEqual(naming("// npm ci\n * docs/x\n'run `npm ci`' // README\n`see docs/x`"), [
      "'run `npm ci`'",
      '`see docs/x`',
    ])
    assert.ok(files.length > 500)
    for (const path of files) assert.deepEqual(naming(readFileSync(path, 'utf8')), [], path)
  })

  it('the Dockerfile parser of these tests joins continued lines', () => {
    const text = '# c\nFROM a AS b\nRUN one \\\n # not this\n && two\nCMD ["x", "y z"]\n'
    assert.deepEqual(instructionsOf(text), [
      { name: 'FROM', rest: 'a AS b' },
      { name: 'RUN', rest: 'one && two' },
      { name: 'CMD', rest: '["x", "y z"]' },
    ])
  })
})

describe('the systemd service', () => {
  it('the service runs the command of `npm start`, with separate data and cache folders and valid settings', () => {
    assert.deepEqual(settingOf('ExecStart'), [`/opt/pennon/node_modules/.bin/node ${startCommand}`])
    assert.deepEqual(settingOf('WorkingDirectory'), ['/opt/pennon'])
    const environment = Object.fromEntries(settingOf('Environment').map(line => line.split('=')))
    assert.equal(environment.PENNON_DATA, `/var/lib/${settingOf('StateDirectory')[0]}`)
    assert.equal(environment.NODE_COMPILE_CACHE, `/var/cache/${settingOf('CacheDirectory')[0]}`)
    const { NODE_COMPILE_CACHE: _, ...settings } = environment
    assert.ok(readConfig(settings).ok)
  })

  it('systemd allows a stop its full ten seconds, and does not repeat a refused start', () => {
    assert.ok(Number(settingOf('TimeoutStopSec')[0]) > 10)
    assert.deepEqual(settingOf('KillMode'), ['mixed'])
    assert.deepEqual(settingOf('RestartPreventExitStatus'), ['2'])
  })
})
