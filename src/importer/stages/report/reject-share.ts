// When so many records are refused that the mapping is probably wrong. Source: docs/wire/import.md §2.6.

import { formatCount } from '#core/format-count.ts'
import { formatPercent } from './suspicions.ts'

/** A handful says nothing of the whole, however few records there are. */
const rejectsMin = 5

export function isShareTooLarge(rejected: number, read: number, maxShare: number): boolean {
  return rejected > rejectsMin && rejected / read > maxShare
}

/** @param held about how many records the rejects hold, where some hold many. */
export function shareOfRejects(share: number, maxShare: number, held?: number): string {
  const long = held === undefined ? '' : `What cannot be read is as long as about ${formatCount(held, 'record')}, so `
  return `${long}${formatPercent(share)} of the records are rejected; the job pauses above ${formatPercent(maxShare)} (--max-reject-share) and ${rejectsMin} records.`
}

/** The least whole share, as the option takes it, that allows what was found. */
export function shareThatAllows(rejected: number, read: number): string {
  return `${Math.ceil((rejected / Math.max(1, read)) * 100)}%`
}
