import assert from 'node:assert/strict'
import { it } from 'node:test'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { nothingFound } from './checked-load.ts'
import { runKillRounds } from './kill-rounds.ts'

it('every acknowledged event is stored exactly once despite 10 kills of the process tree, worker, engine and front', async t => {
  const seed = testSeed()
  t.diagnostic(`SEED=${seed}`)
  const result = await runKillRounds({ rounds: 10, random: seededRandom(seed), log: line => t.diagnostic(line) })
  t.diagnostic(`${result.acknowledgedCount} events acknowledged`)
  assert.ok(result.acknowledgedCount > 100, 'the load was too small to be conclusive')
  const { acknowledgedCount: _, ...findings } = result
  assert.deepEqual(findings, nothingFound)
})
