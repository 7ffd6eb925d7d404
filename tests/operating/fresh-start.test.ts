// A user starts Pennon for the first time, runs doctor and stops it: no output may look like a problem.

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import { collectText } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { startPennonFor } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Line {
  readonly level: string
  readonly process: string
  readonly msg: string
}

it('a first start, doctor and a stop print no warnings, and the stop reports that it is complete', async t => {
  const dataFolder = join(tempDir(t), 'data')
  const pennon = await startPennonFor(t, { dataFolder, settings: { PENNON_LOG_LEVEL: 'info' } })
  // Persons can be queried once the event store has been compared with the state.
  const query = { kind: 'HogQLQuery', query: 'SELECT count() FROM persons' }
  await eventually(() => pennon.api('POST', '/api/projects/@current/query/', { query }), { what: 'the first query' })

  const args = ['--disable-warning=ExperimentalWarning', 'src/main.ts', 'doctor']
  const env = { PATH: process.env.PATH, PENNON_DATA: dataFolder, PORT: String(pennon.port) }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env })
  assert.equal(stderr, '')
  assert.match(stdout, /No problems found\.\n$/)
  assert.deepEqual(
    stdout.split('\n').filter(line => /^(WARN|FAIL)/.test(line)),
    [],
  )

  assert.equal(await pennon.stop(), 0)
  const lines = await eventually(() => {
    const logged = pennon
      .output()
      .split('\n')
      .filter(line => line.startsWith('{'))
    const found = logged.map(line => JSON.parse(line) as Line)
    return found.at(-1)?.msg === 'stopped' ? found : null
  })
  assert.deepEqual(
    lines.map(({ level, process, msg }) => `${level} ${process}: ${msg}`),
    ['info serve: GeoIP enabled', 'info serve: stopping', 'info serve: stopped'],
  )
})

for (const when of ['before it serves', 'while its children start'])
  it(`a first start ended by Ctrl-C ${when} has shown its new keys, and no warnings`, async t => {
    const dataFolder = join(tempDir(t), 'data')
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', 'src/main.ts', 'serve'], {
      env: { ...process.env, NODE_TEST_CONTEXT: undefined, PORT: '0', PENNON_DATA: dataFolder },
      detached: true, // a separate process group, like that of a terminal
    })
    const kill = (signal: NodeJS.Signals) => process.kill(-child.pid!, signal)
    t.after(() => child.exitCode ?? kill('SIGKILL'))
    const output = collectText(child.stdout, child.stderr)
    const ended = new Promise(resolve => child.once('close', resolve))
    const isMoment =
      when === 'before it serves' ? () => keyCount(dataFolder) > 0 : () => output().includes('serving on')
    await eventually(isMoment, { what: 'the moment of the signal' })
    kill('SIGINT')
    assert.equal(await ended, 0, output())
    assert.match(output(), /Personal API key {2}phx_/)
    assert.match(output(), /"msg":"stopped"\}\n$/)
    assert.doesNotMatch(output(), /"level":"(?:warn|error)"/)
  })

/** 0 until the state and its tables exist. */
function keyCount(dataFolder: string): number {
  const file = join(dataFolder, 'state.db')
  if (!existsSync(file)) return 0
  try {
    const database = new Database(file, { readonly: true })
    try {
      return database.prepare<[], number>('SELECT count(*) FROM personal_api_key').pluck().get()!
    } finally {
      database.close()
    }
  } catch {
    return 0
  }
}
