import { describe, it } from 'node:test'
import { testSeed } from '../support/seeded-random.ts'
import { runRandomTrends } from './random-trends.ts'

describe('random trends', () => {
  it('match a plain program’s results, after merges, repeats, imports and a restart', async t => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    await runRandomTrends(t, { queryCount: 300, seed, log: line => t.diagnostic(line) })
  })
})
