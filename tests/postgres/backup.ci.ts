// A backup with the state in PostgreSQL: first the database, then the folder. Both are restored.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFaults, nothingFound, patientTarget, startCheckedLoad } from '../faults/checked-load.ts'
import { eventually } from '../support/eventually.ts'
import { startPennon, testProjectKey } from '../support/pennon.ts'
import { runCommand } from '../support/pennon-command.ts'
import { noPostgres, startPostgresForTests } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'

test('brings back what was acknowledged before the copy of the database, and says which half it holds', {
  skip: noPostgres(),
}, async t => {
  const folder = tempDir(t)
  const postgres = await startPostgresForTests(t)
  const url = await postgres.createDatabase()
  const [original, restored, file] = [join(folder, 'original'), join(folder, 'restored'), join(folder, 'b.tar')]
  const pennon = await startPennon({ dataFolder: original, settings: { DATABASE_URL: url } })
  t.after(() => pennon.killTree())
  const load = startCheckedLoad(() => patientTarget(pennon))
  await eventually(() => load.acknowledgedCount() > 200)
  const sent = await load.stop()
  // What the copy of the database lacks is in the log, whose segments are kept for a day.
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
    { timeoutMs: 60_000, what: 'marks' },
  )
  await pennon.caughtUp()
  const made = await runCommand({ DATABASE_URL: url, PENNON_DATA: original }, 'backup', file)
  assert.equal(made.exitCode, 0, made.stderr)
  assert.match(made.stdout, /not in it: the state in PostgreSQL\. Its dump has to be older/)
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
  assert.deepEqual(
    [elsewhere.exitCode, /CLICKHOUSE_URL .* Unset it/.test(elsewhere.stderr)],
    [2, true],
    elsewhere.stderr,
  )
  const back = await runCommand({ DATABASE_URL: url, PENNON_DATA: restored }, 'restore', file)
  assert.equal(back.exitCode, 0, back.stderr)
  const again = await startPennon({ dataFolder: restored, settings: { DATABASE_URL: url } })
  t.after(() => again.killTree())
  assert.deepEqual(await findFaults(patientTarget(again), [sent]), nothingFound)
  assert.doesNotMatch(again.output(), /not as it was left/, 'nothing was lost')
})
