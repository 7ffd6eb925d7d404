// The part of the exhaustive tests that a run takes. `npm run test:nightly` (TESTS_NIGHTLY=1) takes all cases and many
// runs; every other run takes few runs and a share of the cases drawn by its seed, which SEED=… repeats.

import { testSeed } from './seeded-random.ts'

const isNightly = process.env.TESTS_NIGHTLY === '1'

/** The number of runs of a random test. */
export function runs(few: number, many: number): number {
  return isNightly ? many : few
}

/**
 * One of `parts` equal shares of the cases, or all of them in the nightly run.
 * @param turn different values take different shares in the same run.
 */
export function shareOf<T>(cases: readonly T[], parts: number, turn = 0): readonly T[] {
  if (isNightly) return cases
  const share = (testSeed() + turn) % parts
  return cases.filter((_, index) => index % parts === share)
}
