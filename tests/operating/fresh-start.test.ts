// Somebody starts Pennon for the first time, asks doctor and stops it again: nothing that looks like trouble is printed.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { eventually } from '../support/eventually.ts'
import { startPennon } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Line {
  readonly level: string
  readonly process: string
  readonly msg: string
}

it('a first start, doctor beside it and a stop print nothing that alarms, and the stop says when it has ended', async t => {
  const dataFolder = join(tempDir(t), 'data')
  const pennon = await startPennon({ dataFolder, settings: { PENNON_LOG_LEVEL: 'info' } })
  t.after(() => pennon.stop())
  // Persons are looked for in the event store once that has been compared with the state.
  const query = { kind: 'HogQLQuery', query: 'SELECT count() FROM persons' }
  await eventually(() => pennon.api('POST', '/api/projects/@current/query/', { query }), { what: 'the first query' })

  const args = ['--disable-warning=ExperimentalWarning', 'src/main.ts', 'doctor']
  const env = { PATH: process.env.PATH, PENNON_DATA: dataFolder, PORT: String(pennon.port) }
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env })
  assert.equal(stderr, '')
  assert.match(stdout, /Nothing to mend\.\n$/)
  assert.deepEqual(
    stdout.split('\n').filter(line => /^(WARN|MEND)/.test(line)),
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
    ['info serve: GeoIP is on', 'info serve: stopping', 'info serve: stopped'],
  )
})
