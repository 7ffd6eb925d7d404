// Where a subject sits on the unit line, and what follows from it: inside a rollout or not, which variant.
// Everything a client can check by hand; the vectors pin it bit by bit.

import { sha1Top60 } from './sha1.ts'

/** 0xFFFFFFFFFFFFFFF as a double. */
const unitLineEnd = 2 ** 60

/**
 * Where a subject sits for one flag and salt, 0 to 1.
 * Source: docs/wire/evaluation.md 5.3; vectors, tests/conformance/evaluation-vectors.json.
 */
export function flagHash01(flagKey: string, subjectId: string, salt: '' | 'variant'): number {
  if (subjectId === '') return 0 // without hashing: inside every rollout, even 0 %
  return sha1Top60(flagKey, '.', subjectId, salt) / unitLineEnd
}

/** The same for holdouts: no flag key, no salt, and an empty id is hashed like any other. Source: docs/wire/evaluation.md 5.6. */
export function holdoutHash01(subjectId: string): number {
  return sha1Top60('holdout-', subjectId) / unitLineEnd
}

/** Inclusive, so that 0 % still holds whoever hashes to 0. Source: docs/wire/evaluation.md 5.3. */
export function isInRollout(hash01: number, rolloutPercentage: number): boolean {
  return hash01 <= rolloutPercentage / 100
}

/** Upper bounds of the variants on the unit line, from their weights in stored order. */
export function variantBounds(rolloutPercentages: readonly number[]): number[] {
  let sum = 0
  return rolloutPercentages.map(percentage => {
    sum += percentage / 100
    return sum
  })
}

/** Index of the first variant whose bound lies above the hash (strictly), or -1. Source: docs/wire/evaluation.md 5.3. */
export function pickVariant(hash01: number, bounds: readonly number[]): number {
  for (let index = 0; index < bounds.length; index++) {
    if (hash01 < bounds[index]!) return index
  }
  return -1
}
