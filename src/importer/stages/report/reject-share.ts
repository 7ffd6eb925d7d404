// Decides when the share of rejected records is so large that the mapping is probably wrong. Source: docs/wire/import.md §2.6.

import { formatCount } from '#core/format-count.ts'
import { formatPercent } from './suspicions.ts'

/** A handful of rejects is always fine, however few records there are. */
const rejectsMin = 5

export function isShareTooLarge(rejected: number, read: number, maxShare: number): boolean {
  return rejected > rejectsMin && rejected / read > maxShare
}

/** @param held estimate of how many records the rejects contain, if some contain many. */
export function describeRejectShare(share: number, maxShare: number, held?: number): string {
  const long = held === undefined ? '' : `The unreadable parts are as long as about ${formatCount(held, 'record')}, so `
  return `${long}${formatPercent(share)} of the records are rejected; the job pauses above ${formatPercent(maxShare)} (--max-reject-share) and ${rejectsMin} records.`
}

/** The smallest value of --max-reject-share, in whole percent, that allows these rejects. */
export function formatSufficientShare(rejected: number, read: number): string {
  return `${Math.ceil((rejected / Math.max(1, read)) * 100)}%`
}
