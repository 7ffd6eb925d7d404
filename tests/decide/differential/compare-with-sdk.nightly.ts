// The short form of `npm run soak -- evaluation`.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startPennonFor } from '../../support/pennon.ts'
import { seededRandom, testSeed } from '../../support/seeded-random.ts'
import { compareRound, emptyComparison } from './compare-with-sdk.ts'

it('20,000 random pairs of flag and person get the same answers as from the evaluator in posthog-node', async t => {
  const seed = testSeed()
  t.diagnostic(`SEED=${seed}`)
  const random = seededRandom(seed)
  const pennon = await startPennonFor(t)
  const comparison = emptyComparison()
  while (comparison.pairCount < 20_000)
    await compareRound(pennon, random, { flagCount: 100, cohortCount: 12, subjectCount: 100 }, comparison)
  t.diagnostic(JSON.stringify(comparison))
  assert.ok(comparison.equalCount > comparison.pairCount * 0.5, 'most pairs are decided by both')
})
