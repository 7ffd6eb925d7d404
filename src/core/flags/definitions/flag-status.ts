// Whether a flag is in use, judged by its definition and its calls, as a code and a sentence. What uses the flag, such
// as an experiment or a survey, does not matter, as in PostHog: a flag that is never called serves none of them.
// Source: docs/wire/private-api.md 4.1.

import { dayMs } from '../../time.ts'
import type { Flag } from './flag.ts'
import { readFlagRollout } from './flag-rollout.ts'

export const flagStatuses = ['ACTIVE', 'STALE', 'INACTIVE', 'ARCHIVED', 'DELETED'] as const
export type FlagStatus = (typeof flagStatuses)[number]

const staleAfterDays = 30
export const staleAfterMs = staleAfterDays * dayMs

/** The parts of a flag that its status depends on. */
export type FlagStatusInput = Pick<Flag, 'active' | 'archived' | 'deleted' | 'filters' | 'conditionsSinceMs'>

/**
 * An active flag is stale when it was not called for 30 days; or when no call is known and it has decided the same for
 * every subject for 30 days; or when it has been rolled out to no subject for 30 days, called or not.
 * @param lastCalledAtMs null when no call is known.
 */
export function statusOfFlag(
  flag: FlagStatusInput,
  lastCalledAtMs: number | null,
  nowMs: number,
): { readonly status: FlagStatus; readonly reason: string } {
  if (flag.deleted) return { status: 'DELETED', reason: 'The flag is deleted.' }
  if (flag.archived) return { status: 'ARCHIVED', reason: 'The flag is archived.' }
  if (!flag.active) return { status: 'INACTIVE', reason: 'The flag is disabled.' }
  const call =
    lastCalledAtMs === null ? 'No call of the flag has been recorded yet' : describeLastCall(nowMs - lastCalledAtMs)
  if (lastCalledAtMs !== null && nowMs - lastCalledAtMs >= staleAfterMs)
    return { status: 'STALE', reason: `The flag has not been called for ${describeDays(nowMs - lastCalledAtMs)}.` }
  const settledMs = nowMs - flag.conditionsSinceMs
  if (settledMs < staleAfterMs) return { status: 'ACTIVE', reason: `${call}.` }
  const rollout = readFlagRollout(flag.filters)
  if (rollout.kind === 'nobody')
    return {
      status: 'STALE',
      reason: `The flag has been rolled out to no users for ${describeDays(settledMs)}. ${call}.`,
    }
  if (rollout.kind === 'everybody' && lastCalledAtMs === null) {
    const answer = rollout.variant === null ? 'true' : `the variant "${rollout.variant}"`
    return {
      status: 'STALE',
      reason: `The flag has been ${answer} for all users for ${describeDays(settledMs)}. ${call}.`,
    }
  }
  return { status: 'ACTIVE', reason: `${call}.` }
}

function describeLastCall(agoMs: number): string {
  return agoMs < dayMs
    ? 'The flag was called within the last day'
    : `The flag was last called ${describeDays(agoMs)} ago`
}

/** Formats a time span as whole days, at least one. */
function describeDays(spanMs: number): string {
  const count = Math.max(1, Math.floor(spanMs / dayMs))
  return count === 1 ? '1 day' : `${count} days`
}
