// The package made by `npm run pack`, installed into an empty folder on a machine with Node and npm, by the commands of
// docs/operating/package.md.

import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, before, it } from 'node:test'
import { promisify } from 'node:util'
import { PostHog } from 'posthog-node'
import packageJson from '../../package.json' with { type: 'json' }
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { removeFolder, tempDir } from '../support/temp-dir.ts'

/** The name has characters with a special meaning in URLs and shells. */
const world = mkdtempSync(join(tmpdir(), 'pennon-test %41 &-'))
const tarball = join(world, `pennon-${packageJson.version}.tgz`)
const folder = join(world, 'pennon')
const installed = join(folder, 'node_modules', 'pennon')
/**
 * The environment of a machine with the system's programs and one Node 26 with npm, without npm's own variables for
 * scripts.
 */
const environment = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm|PENNON|NODE_TEST)_|^INIT_CWD$/i.test(name)),
  ),
  PATH: [join(world, 'bin'), '/usr/bin', '/bin'].join(delimiter),
  npm_config_prefer_offline: 'true',
}
const [packing, installing] = [...readFileSync('docs/operating/package.md', 'utf8').matchAll(/^```\n(.*?)^```/gms)].map(
  match => match[1]!.trim().split('\n'),
)
const run = promisify(execFile)

before(async () => {
  mkdirSync(join(world, 'bin'))
  symlinkSync(process.execPath, join(world, 'bin', 'node'))
  const npm = realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())
  for (const name of ['npm', 'npx']) symlinkSync(join(npm, '..', `${name}-cli.js`), join(world, 'bin', name))
  assert.deepEqual(packing, ['npm run pack'])
  const { stdout } = await run('npm', ['run', '--silent', 'pack', '--', world])
  assert.equal(stdout.split('\n')[0], tarball)
  assert.deepEqual(installing?.slice(0, 2), ['mkdir pennon && cd pennon', 'npm install --prefix . ../pennon-*.tgz'])
  await run('sh', ['-ec', installing!.slice(0, 2).join('\n')], { cwd: world, env: environment, timeout: 240_000 })
})
after(() => removeFolder(world))

it('building the same sources twice gives a package with the same bytes', async t => {
  const other = tempDir(t)
  await run('npm', ['run', '--silent', 'pack', '--', other])
  assert.ok(readFileSync(tarball).equals(readFileSync(join(other, `pennon-${packageJson.version}.tgz`))))
})

it('a package from a git checkout contains only documents and programs that git tracks', async t => {
  const clone = tempDir(t)
  const copied = ['bin', 'deploy', 'docs', 'src', 'scripts', 'web', 'bench/README.md', 'NOTICE']
  for (const path of [...copied, ...globSync('*.{md,json}')]) cpSync(path, join(clone, path), { recursive: true })
  execFileSync('sh', ['-c', 'git init --quiet && git add --all'], { cwd: clone })
  for (const path of ['docs/draft.md', 'bin/notes', 'DRAFT.md']) writeFileSync(join(clone, path), '')
  await run(process.execPath, ['scripts/pack.ts', clone], { cwd: clone })
  const packed = execFileSync('tar', ['-tzf', `pennon-${packageJson.version}.tgz`], { cwd: clone, encoding: 'utf8' })
  const others = packed.split('\n').filter(path => /^package\/(bin\/|docs\/import\.md|.*draft\.md)/i.test(path))
  assert.deepEqual(others.toSorted(), ['package/bin/pennon', 'package/bin/preload.js', 'package/docs/import.md'])
})

it('the package contains JavaScript with the line numbers of the sources, and neither tests nor Node', () => {
  const files = globSync('**/*', { cwd: installed })
  assert.deepEqual(
    files.filter(file => /\.ts$|\.test\./.test(file)),
    [],
  )
  assert.deepEqual(readdirSync(installed).sort(), [
    'ARCHITECTURE.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'NOTICE',
    'README.md',
    'bench',
    'bin',
    'deploy',
    'docs',
    'npm-shrinkwrap.json',
    'package.json',
    'src',
    'web',
  ])
  const modules = files.filter(file => /^src\/.*\.js$/.test(file))
  assert.ok(modules.length > 1_000)
  for (const file of modules) {
    const code = readFileSync(join(installed, file), 'utf8')
    const source = readFileSync(file.replace(/js$/, 'ts'), 'utf8')
    assert.equal(code.split('\n').length, source.split('\n').length, file)
    assert.doesNotMatch(code, /\.ts['"]/, `${file} names a module that is not in the package`)
  }
  assert.equal(existsSync(join(folder, 'node_modules', '.bin', 'node')), false)
  assert.deepEqual(globSync('node_modules/node-*/bin/node', { cwd: folder }), [])
})

it("links in the package's pages lead to files in the package", () => {
  const links = globSync('**/*.md', { cwd: installed }).flatMap(page =>
    [...readFileSync(join(installed, page), 'utf8').matchAll(/\]\((?!\w+:)([^()\s#]+)/g)].map(([, link]) =>
      join(page, '..', link!),
    ),
  )
  assert.ok(links.includes('CONTRIBUTING.md'))
  assert.deepEqual(
    links.filter(link => !existsSync(join(installed, link))),
    [],
  )
})

it('installed packages match the lock file, and the package requires Node 26', () => {
  const { engines, private: isPrivate } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'))
  assert.deepEqual([engines, isPrivate], [{ node: '>=26' }, true])
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  const found = JSON.parse(readFileSync(join(folder, 'node_modules', '.package-lock.json'), 'utf8')).packages
  const others = Object.keys(found).filter(name => name !== 'node_modules/pennon')
  assert.ok(others.length > 40)
  // Packages nested in another one's node_modules are left out: npm installs their newest allowed version.
  for (const name of others.filter(path => path.lastIndexOf('node_modules/') === 0))
    assert.deepEqual(
      [name, found[name].version, found[name].integrity],
      [name, packages[name]?.version, packages[name]?.integrity],
    )
})

it('the installed package serves flags, accepts events, stores data outside node_modules, and exits with 0', async t => {
  assert.equal(installing?.[2], 'npx pennon serve')
  // With npx, SIGTERM would reach only npm.
  const child = spawn(join(folder, 'node_modules', '.bin', 'pennon'), ['serve'], {
    ...{ cwd: folder, env: { ...environment, PORT: '0' }, stdio: ['ignore', 'pipe', 'pipe'] },
  })
  t.after(() => child.kill('SIGKILL'))
  const output = collectText(child.stdout, child.stderr)
  const ended = new Promise<number | null>(resolve => child.once('exit', resolve))
  const printed = (what: RegExp) =>
    eventually(() => what.exec(output())?.[1] ?? (child.exitCode === null ? null : assert.fail(output())), {
      what: String(what),
    })
  const url = await printed(/serving on (http:\S+)/)
  const projectKey = await printed(/(phc_\w+)/)
  const personalKey = await printed(/(phx_\w+)/)
  assert.match(output(), /npx pennon new-key/)
  assert.ok(output().includes(`More: ${join(installed, 'README.md')}`))

  const api = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${personalKey}`, 'content-type': 'application/json' }
    const answer = await fetch(`${url}/api/projects/@current/${path}`, {
      ...{ method, headers },
      ...(body && { body: JSON.stringify(body) }),
    })
    assert.ok(answer.ok, await answer.clone().text())
    return (await answer.json()) as { results: { event: string }[] }
  }
  await api('POST', 'feature_flags/', { key: 'packed', filters: { groups: [{ rollout_percentage: 100 }] } })
  const page = await (await fetch(`${url}/ui/`)).text()
  const [, entry] = /src="(\/ui\/assets\/index-[^"]+\.js)"/.exec(page)!
  assert.equal((await fetch(url + entry)).status, 200)
  assert.equal(existsSync(join(folder, 'node_modules', 'react-dom')), false)
  const client = new PostHog(projectKey, { host: url })
  assert.equal((await client.evaluateFlags('ada')).getFlag('packed'), true)
  client.capture({ distinctId: 'ada', event: 'unpacked' })
  await client.shutdown()
  await eventually(
    async () => (await api('GET', 'events/?distinct_id=ada')).results.some(({ event }) => event === 'unpacked'),
    { what: 'the event' },
  )

  child.kill('SIGTERM')
  assert.equal(await ended, 0)
  assert.deepEqual(readdirSync(folder).sort(), ['data', 'node_modules', 'package-lock.json', 'package.json'])
})

it('the package’s commands can be run with npx', async () => {
  const npx = async (...args: string[]) =>
    (await run('npx', ['pennon', ...args], { cwd: folder, env: { ...environment, PORT: '0' } })).stdout
  assert.match(await npx('--help'), /npx pennon doctor .*\n.*npx pennon config/)
  assert.match(await npx('doctor'), /ok +event store +embedded ClickHouse.*No problems found/s)
  assert.match(await npx('import', 'convert', '--help'), /^Sources:\n {2}amplitude /m)
})

it('a missing package can be installed with the printed command, in the folder or globally', t => {
  const prefix = realpathSync(tempDir(t))
  const modules = join(prefix, 'node_modules')
  cpSync(installed, join(modules, 'pennon'), { recursive: true })
  for (const name of readdirSync(join(folder, 'node_modules')))
    if (!/^(\.|pennon$|@?chdb)/.test(name)) symlinkSync(join(folder, 'node_modules', name), join(modules, name))
  const serve = () =>
    spawnSync(join(modules, 'pennon', 'bin', 'pennon'), ['serve'], {
      cwd: tempDir(t),
      env: environment,
      encoding: 'utf8',
    })
  assert.match(serve().stderr, /package_missing: chdb.* or run `npm install -g chdb@\d[\d.]+`\.\n$/)
  writeFileSync(join(prefix, 'package.json'), '{}')
  assert.ok(serve().stderr.endsWith(` or run \`npm install --include=optional\` in ${prefix}.\n`))
})

it('files in the current folder have no effect on the installed package', async t => {
  const cwd = tempDir(t)
  writeFileSync(join(cwd, 'package.json'), '{')
  const { stdout } = await run(join(folder, 'node_modules', '.bin', 'pennon'), ['version'], { cwd, env: environment })
  assert.match(stdout, /^pennon \d/)
})

it('an older Node is refused with one sentence', async t => {
  const bin = tempDir(t)
  for (const name of ['dirname', 'readlink'])
    symlinkSync(execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim(), join(bin, name))
  const start = () =>
    run('/bin/sh', [join(installed, 'bin', 'pennon'), 'version'], { env: { PATH: bin } }).catch(({ code, stderr }) => [
      code,
      stderr,
    ])
  const refused = (found: string) => [2, `pennon: this needs Node 26 or newer on the PATH, where there is ${found}.\n`]
  assert.deepEqual(await start(), refused('none'))
  for (const version of ['v20.20.2', 'v25.9.0', 'v26.0.0', 'v30.1.0']) {
    writeFileSync(join(bin, 'node'), `#!/bin/sh\n[ "$1" = --version ] || exit 0\necho ${version}\n`, { mode: 0o755 })
    if (version < 'v26') assert.deepEqual(await start(), refused(version))
    else assert.deepEqual(await start(), { stdout: '', stderr: '' })
  }
})
