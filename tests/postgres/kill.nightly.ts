import assert from 'node:assert/strict'
import { it } from 'node:test'
import { nothingFound } from '../faults/checked-load.ts'
import { runKillRounds } from '../faults/kill-rounds.ts'
import { noPostgres, startPostgresForTests } from '../support/postgres.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'

it('every acknowledged event is stored exactly once after 5 rounds that kill processes and PostgreSQL', {
  skip: noPostgres(),
}, async t => {
  const seed = testSeed()
  t.diagnostic(`SEED=${seed}`)
  const postgres = await startPostgresForTests(t)
  const result = await runKillRounds({
    rounds: 5,
    random: seededRandom(seed),
    log: line => t.diagnostic(line),
    settings: { DATABASE_URL: await postgres.createDatabase() },
    disturb: () => postgres.restart(),
  })
  t.diagnostic(`${result.acknowledgedCount} events acknowledged`)
  assert.ok(result.acknowledgedCount > 100, 'the load was too small to be conclusive')
  const { acknowledgedCount: _, ...findings } = result
  assert.deepEqual(findings, nothingFound)
})
