// A stop while the database hangs: in time, and with everything that clients were told is kept.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { startPennon, testProjectKey } from '../support/pennon.ts'
import { noPostgres, startPostgresForTests, type TestPostgres } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'

for (const fronts of ['1', '2'])
  test(`stops within 10 s while PostgreSQL hangs, and loses no event (${fronts} front)`, {
    skip: noPostgres(),
  }, async t => {
    const postgres = await startPostgresForTests(t)
    const dataFolder = tempDir(t)
    const settings = { DATABASE_URL: await postgres.createDatabase(), PENNON_FRONT_PROCESSES: fronts }
    const pennon = await startPennon({ dataFolder, settings })
    await pennon.api('GET', '/api/projects/@current/feature_flags/')
    await pennon.caughtUp()

    const frozen = processesOf(postgres)
    for (const pid of frozen) process.kill(pid, 'SIGSTOP')
    try {
      for (let count = 0; count < 20; count++) {
        const body = { api_key: testProjectKey, distinct_id: 'ada' }
        assert.equal((await pennon.post('/flags?v=2', body)).status, 200)
        assert.equal((await pennon.post('/i/v0/e/', { ...body, event: 'seen', properties: { count } })).status, 200)
      }
      const startedAt = performance.now()
      const exitCode = await pennon.stop()
      const stopMs = performance.now() - startedAt
      assert.equal(exitCode, 0, pennon.output())
      assert.ok(stopMs < 9_500, `the stop took ${stopMs} ms`)
    } finally {
      for (const pid of frozen) process.kill(pid, 'SIGCONT')
    }

    const again = await startPennon({ dataFolder, settings })
    t.after(() => again.stop())
    await again.caughtUp()
    const { results } = await again.api<{ results: unknown[] }>('GET', '/api/projects/@current/events/?event=seen')
    assert.equal(results.length, 20)
  })

/** The server and its sessions, as they are now. */
function processesOf({ pid }: TestPostgres): number[] {
  const others = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  return [pid, ...others.map(Number).filter(other => parentOf(other) === pid)]
}

function parentOf(pid: number): number | null {
  try {
    return Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return null // ended meanwhile
  }
}
