import assert from 'node:assert/strict'
import { it } from 'node:test'
import { testSeed } from '../support/seeded-random.ts'
import { killEngineRounds } from './engine-rounds.ts'

it('every acknowledged row survives 8 kills during inserts', async t => {
  const seed = testSeed()
  t.diagnostic(`seed ${seed}`)
  assert.ok((await killEngineRounds(8, seed)) > 0)
})
