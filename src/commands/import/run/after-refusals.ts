import type { TooManyRefused } from '#importer/send/send-stage.ts'
import { formatSufficientShare } from '#importer/stages/report/reject-share.ts'

/**
 * The remedies when the service refused too many events. Another limit needs another approval.
 * @param at the folder of the job as a shell takes it.
 */
export function describeStepAfterRefusals(
  { refused, events }: Pick<TooManyRefused, 'refused' | 'events'>,
  at: string,
): string {
  return (
    `Next: fix the cause, then pennon import run ${at}; or allow more: pennon import run ${at} --max-reject-share ${formatSufficientShare(refused, events)}, ` +
    `pennon import approve ${at}, pennon import run ${at}; or undo it: pennon import discard ${at}`
  )
}
