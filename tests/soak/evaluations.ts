// Evaluates a million random pairs of flag and person with `/flags` and with the evaluator in posthog-node.

import { compareRound, emptyComparison } from '../decide/differential/compare-with-sdk.ts'
import { startPennon } from '../support/pennon.ts'
import { seededRandom } from '../support/seeded-random.ts'

export interface EvaluationsOptions {
  readonly pairCount: number
  readonly seed: number
  readonly log: (line: string) => void
}

/** @throws AssertionError for an undocumented difference. @returns true. */
export async function runEvaluations({ pairCount, seed, log }: EvaluationsOptions): Promise<boolean> {
  const random = seededRandom(seed)
  const comparison = emptyComparison()
  while (comparison.pairCount < pairCount) {
    // Limits a server to a few dozen of these projects, as in practice.
    const pennon = await startPennon()
    try {
      for (let round = 0; round < 10 && comparison.pairCount < pairCount; round++)
        await compareRound(pennon, random, { flagCount: 100, cohortCount: 12, subjectCount: 200 }, comparison)
    } finally {
      await pennon.stop()
    }
    log(`${comparison.pairCount} pairs, ${comparison.equalCount} equal`)
  }
  log(JSON.stringify(comparison, null, 2))
  return true
}
