import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { it } from 'node:test'
import { plannedJob } from '../support/import-command.ts'
import { refusalOf } from '../support/pennon-command.ts'

const goodLine = `${JSON.stringify({ id: 'r', event: 'Paid', user: 'u-1', at: '2024-05-01T12:00:00Z' })}\n`

it('commands that only report on a job print which file in the job’s folder is damaged', async t => {
  const commands = await plannedJob(t, `${goodLine}broken\n`)
  await commands.call('run')
  const reject = globSync('rejects/*/*.jsonl', { cwd: commands.job })[0]!
  const cut = '{"v": 1, "par'
  const cases: readonly (readonly [name: string, content: string, command: readonly [string, ...string[]]])[] = [
    ['state.db', cut, ['report']],
    ['state.db', cut, ['run']],
    ['lock.db', cut.repeat(1_000), ['status']],
    ['lock.db', cut.repeat(1_000), ['run']],
    ['manifest.json', cut, ['report']],
    ['manifest.json', 'null', ['run']],
    ['manifest.json', '{"raw": [], "objects": 7, "parts": [], "totals": {}}', ['run']],
    ['report.json', cut, ['report']],
    ['report.json', '[]', ['run']],
    ['report.json', '{}', ['report']],
    ['report.json', '{"balance": {}, "events": [], "days": [7]}', ['report']],
    ['plan.json', cut, ['status']],
    ['plan.json', '', ['run']],
    ['progress.json', cut, ['status']],
    ['progress.json', '{"v": 1, "state": "running", "stage": "send"}', ['status']],
    ['rehearsal/samples.jsonl', '{"of": "Pa\n', ['report', '--samples']],
    ['rehearsal/samples.jsonl', '{"of": "Paid"}\n', ['report', '--samples']],
    [reject, '{"reason": "js\n', ['rejects']],
    [reject, 'null\n', ['rejects', '--group']],
    [reject, '{"reason": "json_syntax"}\n', ['rejects']],
  ]
  for (const [name, content, command] of cases) {
    const path = join(commands.job, name)
    const before = existsSync(path) ? readFileSync(path) : null
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    const { exitCode, stderr } = await commands.call(...command)
    const context = `${name} ${content}: ${stderr}`
    assert.equal(exitCode, 2, context)
    assert.match(stderr, /^(\{.*\}\n)?pennon: [^\n]* is damaged\. (Delete|Restore it from) [^\n]*\n$/, context)
    assert.ok(stderr.includes(`${path} is damaged`), context)
    if (before === null) rmSync(path)
    else writeFileSync(path, before)
  }
  writeFileSync(join(commands.job, reject), '')
  rmSync(join(commands.job, 'report.json'))
  await commands.call('run')
  assert.match((await commands.call('rejects')).stdout, /line 2: json_syntax/)
})

it('commands print in one line which file is a folder, or belongs to another user, and what to do', async t => {
  const commands = await plannedJob(t, `${goodLine}broken\n`)
  await commands.call('run')
  const reject = globSync('rejects/*/*.jsonl', { cwd: commands.job })[0]!
  // Root may read every file, unless it gives up these rights.
  const [launcher = process.execPath, ...options] = [
    ...(process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : []),
    process.execPath,
  ]
  for (const [name, command] of [
    ['lock.db', 'status'],
    ['lock.db', 'run'],
    ['job.db', 'run'],
    [reject, 'rejects'],
    ['state.db', 'status'],
    ['plan.json', 'run'],
    ['report.json', 'report'],
  ] as const) {
    const path = join(commands.job, name)
    const bytes = readFileSync(path)
    chmodSync(path, 0)
    const args = [...options, '--import', './bin/preload.js', 'src/main.ts', 'import', command, commands.job]
    const { status, stderr } = spawnSync(launcher, args, { encoding: 'utf8' })
    assert.equal(status, 2, stderr)
    assert.ok(stderr.endsWith('chmod u+rw, or chown\n') && stderr.includes(`pennon: ${path} cannot be used`), stderr)
    rmSync(path)
    mkdirSync(path)
    const refused = refusalOf(await commands.call(command))
    const lines = refused.split('\n').filter(line => line.startsWith(`pennon: ${path} is `))
    assert.match(lines.join('\n'), /^\S+ \S+ is (damaged|a folder)[^.]*\. (Delete|Restore) [^\n]+$/, refused)
    rmSync(path, { recursive: true })
    writeFileSync(path, bytes)
  }
})

it('every command stops, instead of sending again, if the job’s state is missing or belongs to another job', async t => {
  const [commands, other] = [await plannedJob(t, goodLine), await plannedJob(t, goodLine)]
  await commands.call('run')
  const path = join(commands.job, 'state.db')
  const whole = readFileSync(path)
  const cases: readonly (readonly [how: string, replace: () => void])[] = [
    ['is missing', () => {}],
    ['is damaged', () => writeFileSync(path, '')],
    ['is damaged', () => cpSync(join(commands.job, 'job.db'), path)],
    ['is damaged', () => mkdirSync(path)],
    ['is missing', () => symlinkSync('nowhere', path)],
    ['is of another import', () => cpSync(join(other.job, 'state.db'), path)],
  ]
  for (const [how, replace] of cases) {
    for (const command of ['status', 'report', 'rejects', 'run', 'publish', 'discard']) {
      rmSync(path, { recursive: true, force: true })
      replace()
      const stderr = refusalOf(await commands.call(command))
      assert.ok(
        stderr.startsWith(`pennon: ${path} ${how}. Delete state.db-wal if it exists, and restore `),
        `${command}: ${stderr}`,
      )
    }
    const raw = commands.file('more.jsonl', goodLine)
    assert.ok(refusalOf(await commands.plan([raw])).includes(`${path} ${how}. `), how)
  }
  rmSync(path)
  writeFileSync(path, whole)
  assert.equal((await commands.call('status')).exitCode, 0)
})
