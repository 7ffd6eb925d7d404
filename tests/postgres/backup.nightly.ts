// A backup with the state in PostgreSQL: first the database, then the folder. Both are restored. Dumps leave out the
// salts of cookieless visitors.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFaults, nothingFound, patientTarget, startCheckedLoad } from '../faults/checked-load.ts'
import { eventually } from '../support/eventually.ts'
import { startPennonFor, testProjectKey } from '../support/pennon.ts'
import { runCommand } from '../support/pennon-command.ts'
import { noPostgres, startPostgresForTests, type TestPostgres } from '../support/postgres.ts'
import { assertOneVisitorOnAllFronts, visitorTraces } from '../support/same-visitor-on-fronts.ts'
import { tempDir } from '../support/temp-dir.ts'

test('a backup with PostgreSQL restores all events next to an older dump, and reports that it lacks the state', {
  skip: noPostgres(),
}, async t => {
  const folder = tempDir(t)
  const postgres = await startPostgresForTests(t)
  const url = await postgres.createDatabase()
  const [original, restored, file] = [join(folder, 'original'), join(folder, 'restored'), join(folder, 'b.tar')]
  const settings = { DATABASE_URL: url, PENNON_FRONT_PROCESSES: '2' }
  const pennon = await startPennonFor(t, { dataFolder: original, settings })
  await t.test('fronts on PostgreSQL give a cookieless visitor the same id', () => assertOneVisitorOnAllFronts(pennon))
  await t.test('a PostgreSQL dump made as documented contains no salts', () => assertDumpedWithoutSalts(postgres, url))
  const load = startCheckedLoad(() => patientTarget(pennon))
  await eventually(() => load.acknowledgedCount() > 200)
  const sent = await load.stop()
  // The log has what the copy of the database lacks; its segments are kept for a day.
  const copy = await postgres.copy()
  // The copy is older than several of the marks that the worker leaves in the event store.
  const marks = new Set<string>()
  await eventually(
    async () => {
      const event = { api_key: testProjectKey, event: 'behind the copy', distinct_id: 'ada' }
      assert.equal((await pennon.post('/e/', event)).status, 200)
      const [row] = await postgres.query<{ mark: string }>('SELECT mark FROM event_store_mark', [], url)
      marks.add((JSON.parse(row!.mark) as { id: string }).id)
      await sleep(500)
      return marks.size > 3
    },
    { what: 'marks' },
  )
  await pennon.caughtUp()
  const made = await runCommand({ DATABASE_URL: url, PENNON_DATA: original }, 'backup', file)
  assert.equal(made.exitCode, 0, made.stderr)
  assert.match(made.stdout, /not included: the state in PostgreSQL\. Restore a dump that is older/)
  const names = execFileSync('tar', ['tf', file], { encoding: 'utf8' }).split('\n')
  assert.deepEqual(
    ['state.db', 'log/identity', 'log/main/0000000000000000.db'].map(name => names.includes(name)),
    [false, true, true],
  )
  await pennon.killTree()
  await copy.comeBack()

  const alone = await runCommand({ PENNON_DATA: restored }, 'restore', file)
  assert.deepEqual([alone.exitCode, /set DATABASE_URL to it/.test(alone.stderr)], [2, true], alone.stderr)
  const elsewhere = await runCommand(
    { DATABASE_URL: url, PENNON_DATA: restored, CLICKHOUSE_URL: 'http://127.0.0.1:9/x' },
    'restore',
    file,
  )
  assert.deepEqual([elsewhere.exitCode, /Unset CLICKHOUSE_URL/.test(elsewhere.stderr)], [2, true], elsewhere.stderr)
  const back = await runCommand({ DATABASE_URL: url, PENNON_DATA: restored }, 'restore', file)
  assert.equal(back.exitCode, 0, back.stderr)
  const again = await startPennonFor(t, { dataFolder: restored, settings: { DATABASE_URL: url } })
  assert.deepEqual(await findFaults(patientTarget(again), [sent]), nothingFound)
  assert.doesNotMatch(again.output(), /the event store has changed/, 'nothing was lost')
})

/** Of a database with salts and an identified visitor. */
async function assertDumpedWithoutSalts(postgres: TestPostgres, url: string): Promise<void> {
  const page = readFileSync('docs/operating/backup.md', 'utf8')
  const option = /pg_dump (--exclude-table-data)='([^']+)'/.exec(page)!.slice(1).join('=')
  const [whole, documented] = [postgres.dump(url), postgres.dump(url, option)]
  const salts = await postgres.query<{ hex: string }>("SELECT encode(salt, 'hex') AS hex FROM cookieless_salt", [], url)
  assert.equal(salts.length, 3)
  for (const { hex } of salts) assert.ok(whole.includes(hex) && !documented.includes(hex))
  assert.match(documented, /CREATE TABLE \S*cookieless_salt /)
  assert.match(documented, /user 2/)
  for (const trace of visitorTraces) assert.ok(!whole.includes(trace), trace)
}
