// What of the exhaustive tests a run takes. `npm run test:nightly` (TESTS_NIGHTLY=1) takes all cases and many runs;
// every other run takes few runs, and a share of the cases that its seed draws: SEED=… repeats it.

import { testSeed } from './seeded-random.ts'

const isNightly = process.env.TESTS_NIGHTLY === '1'

/** How often a random test runs. */
export function runs(few: number, many: number): number {
  return isNightly ? many : few
}

/**
 * One of `parts` equal shares of the cases, or in the nightly run all of them.
 * @param turn another one takes another share in the same run.
 */
export function shareOf<T>(cases: readonly T[], parts: number, turn = 0): readonly T[] {
  if (isNightly) return cases
  const share = (testSeed() + turn) % parts
  return cases.filter((_, index) => index % parts === share)
}
