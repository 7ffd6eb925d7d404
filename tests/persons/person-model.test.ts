import { test } from 'node:test'
import fc from 'fast-check'
import { testSeed } from '../support/seeded-random.ts'
import { runStream, stream } from './person-streams.ts'

test('persons and groups match the specification for any stream, chunks, repeats and crashes', async t => {
  const seed = testSeed()
  t.diagnostic(`SEED=${seed}`)
  await fc.assert(fc.asyncProperty(stream, runStream), { numRuns: Number(process.env.RUNS ?? 200), seed })
})
