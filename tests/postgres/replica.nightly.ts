// A replica that is down or hangs affects nothing. A second server with the same rows plays the replica.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { startPennonFor, testProjectKey } from '../support/pennon.ts'
import { noPostgres, startPostgresForTests } from '../support/postgres.ts'

interface Decided {
  readonly featureFlags: Record<string, boolean>
  readonly errorsWhileComputingFlags: boolean
}

const planIs = (value: string) => ({
  groups: [{ properties: [{ key: 'plan', type: 'person', operator: 'exact', value }] }],
})

describe('evaluations with DATABASE_READ_URL', { skip: noPostgres() }, () => {
  it('use DATABASE_URL within their time limit while the replica is down or hangs, and the replica again afterwards', async t => {
    const [primary, replica] = await Promise.all([startPostgresForTests(t), startPostgresForTests(t)])
    const url = await primary.createDatabase()
    const readUrl = await replica.createDatabase()
    const pennon = await startPennonFor(t, { settings: { DATABASE_URL: url, DATABASE_READ_URL: readUrl } })
    for (const plan of ['primary', 'replica'])
      await pennon.api('POST', '/api/projects/@current/feature_flags/', { key: plan, filters: planIs(plan) })
    const sent = await pennon.post('/capture/', {
      api_key: testProjectKey,
      event: '$identify',
      distinct_id: 'ada',
      properties: { $set: { plan: 'primary' } },
    })
    assert.equal(sent.status, 200)
    await pennon.caughtUp()
    copyDatabase(url, readUrl)
    // Shows which server was queried.
    await replica.query(`UPDATE person SET properties = '{"plan":"replica"}'`, [], readUrl)

    const decide = async () => {
      const startedAt = performance.now()
      const response = await pennon.post('/decide?v=3', { api_key: testProjectKey, distinct_id: 'ada' })
      const { featureFlags, errorsWhileComputingFlags } = (await response.json()) as Decided
      const [plan] = Object.keys(featureFlags).filter(key => featureFlags[key])
      return { plan, errorsWhileComputingFlags, waitMs: performance.now() - startedAt }
    }
    const readiness = async () => (await (await fetch(`${pennon.url}/_readiness`)).json()) as Record<string, string>
    const isRead = async (name: string) => (await decide()).plan === name
    await eventually(() => isRead('replica'), { what: 'the replica' })
    assert.equal((await readiness()).read_replica, undefined)

    const answers = async () => {
      const waits: number[] = []
      for (let count = 0; count < 12; count++) {
        const { plan, errorsWhileComputingFlags, waitMs } = await decide()
        assert.deepEqual([plan, errorsWhileComputingFlags], ['primary', false])
        waits.push(waitMs)
      }
      assert.equal((await readiness()).read_replica, 'unavailable')
      assert.deepEqual([(await readiness()).flags, (await readiness()).processing], ['ok', 'ok'])
      return waits
    }
    await replica.kill()
    await answers()
    await replica.restart()
    await eventually(() => isRead('replica'), { what: 'the replica after its restart' })

    const sessions = execFileSync('pgrep', ['-P', String(replica.pid)], { encoding: 'utf8' })
      .trim()
      .split('\n')
    const signal = (name: NodeJS.Signals) => {
      for (const pid of [replica.pid, ...sessions.map(Number)]) process.kill(pid, name)
    }
    signal('SIGSTOP')
    // Answers are complete while it hangs: a flag that waited too long would be an error in them.
    const waits = await answers().finally(() => signal('SIGCONT'))
    t.diagnostic(`answers beside a replica that hangs took ${waits.map(Math.round)} ms`)
    await eventually(() => isRead('replica'), { what: 'the replica after the hang' })
    const metrics = await (await fetch(`${pennon.url}/metrics`)).text()
    assert.match(metrics, /pennon_dependency_failures_total\{port="subject-replica",code="timeout"\} [1-9]/)
    const notices = pennon.output().match(/DATABASE_READ_URL: unavailable; reading them from DATABASE_URL/g)
    assert.ok(notices !== null && notices.length <= 2, pennon.output())
  })
})

function copyDatabase(from: string, to: string): void {
  execFileSync('sh', ['-c', 'pg_dump --no-owner "$1" | psql -q -v ON_ERROR_STOP=1 "$2"', 'sh', from, to], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}
