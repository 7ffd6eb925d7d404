// Maps a subject to a point on the unit line, which decides whether it is inside a rollout and which variant it gets.
// Clients compute the same point, so the test vectors fix every bit.

import { sha1Top60 } from './sha1.ts'

/** The largest hash, 0xFFFFFFFFFFFFFFF, rounded to a double. */
const unitLineEnd = 2 ** 60

/**
 * A subject's point for one flag and salt, 0 to 1. A rule of version 2 uses its seed in place of the flag's key. Source:
 * docs/wire/evaluation.md 5.3; vectors, tests/conformance/evaluation-vectors.json.
 */
export function computeFlagHash01(flagKey: string, subjectId: string, salt: '' | 'variant'): number {
  if (subjectId === '') return 0 // without hashing: inside every rollout, even 0 %
  return sha1Top60(flagKey, '.', subjectId, salt) / unitLineEnd
}

/**
 * A subject's point for holdouts, computed without flag key and salt. An empty id has a point like any other id. @param
 * seed a rule's holdout has its own seed. Source: docs/wire/evaluation.md 5.6, 11.3.
 */
export function computeHoldoutHash01(subjectId: string, seed = 'holdout-'): number {
  return sha1Top60(seed, subjectId) / unitLineEnd
}

/** Includes the upper bound, so that even 0 % includes a subject that hashes to 0. Source: docs/wire/evaluation.md 5.3. */
export function isInRollout(hash01: number, rolloutPercentage: number): boolean {
  return hash01 <= rolloutPercentage / 100
}

/** The variants' upper bounds on the unit line, from their weights in stored order. */
export function computeVariantBounds(rolloutPercentages: readonly number[]): number[] {
  let sum = 0
  return rolloutPercentages.map(percentage => {
    sum += percentage / 100
    return sum
  })
}

/** Index of the first variant whose bound is strictly above the hash, or -1. Source: docs/wire/evaluation.md 5.3. */
export function pickVariant(hash01: number, bounds: readonly number[]): number {
  for (let index = 0; index < bounds.length; index++) {
    if (hash01 < bounds[index]!) return index
  }
  return -1
}
