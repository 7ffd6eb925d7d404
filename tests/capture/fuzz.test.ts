// Mutations of real SDK requests always get a documented answer, are never half stored and never write to a prototype.
// `npm run soak -- fuzz` does the same hundreds of times longer and also checks times.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { testSeed } from '../support/seeded-random.ts'
import { runFuzz } from './fuzz/run-fuzz.ts'

it('mutated requests get only documented errors, and only valid events are stored', async t => {
  const seed = testSeed()
  t.diagnostic(`SEED=${seed}`)
  // A hundred times the duration of an ordinary request, so that only extreme outliers fail on a busy machine.
  const figures = await runFuzz({ requestCount: 600, seed, cpuMsMax: 500 })
  t.diagnostic(JSON.stringify(figures.byStatus))
  assert.ok(figures.eventCount > 50, 'most of them do not even come to their events')
})
