// Evaluates a million random pairs of flag and person with `/flags` and with the evaluator in posthog-node.

import { compareRound, emptyComparison } from '../decide/differential/compare-with-sdk.ts'
import { startPennon } from '../support/pennon.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { numberOf, printedSeed } from './settings.ts'

/** @throws AssertionError for an undocumented difference. @returns true. */
export async function runEvaluations(): Promise<boolean> {
  const random = seededRandom(printedSeed())
  const pairCount = numberOf('PAIRS', 1_000_000)
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
    console.log(`${comparison.pairCount} pairs, ${comparison.equalCount} equal`)
  }
  console.log(JSON.stringify(comparison, null, 2))
  return true
}
