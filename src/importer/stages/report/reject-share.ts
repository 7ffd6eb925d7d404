// When so many records are refused that the mapping is probably wrong. Source: docs/wire/import.md §2.6.

import { percent } from './suspicions.ts'

/** The first records say nothing of the whole. */
const recordsMin = 1_000

export function isShareTooLarge(rejected: number, read: number, maxShare: number): boolean {
  return read > recordsMin && rejected / read > maxShare
}

export function shareOfRejects(share: number, maxShare: number): string {
  return `${percent(share)} of the records are rejected; the job pauses above ${percent(maxShare)} (--max-reject-share).`
}
