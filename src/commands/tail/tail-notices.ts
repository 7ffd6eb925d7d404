// The notices that `pennon tail` prints for people beside the events. They give the time at which a view broke, in the
// form of the event lines, so that missed events can be looked up.

import { notPennon } from './live-view.ts'

export interface TailNotices {
  readonly lost: (reason: string) => string
  /** @param afterMs since the view was lost. */
  readonly back: (afterMs: number) => string
  readonly ended: (reason: string) => string
  /** For a view that never opened. Without a time, since the user reads it at once. */
  readonly unopened: (reason: string) => string
}

const nothingThere = new RegExp(`ECONNREFUSED|ENOTFOUND|${notPennon}`)
const remedy = '. Set the URL of the instance with --host, or the PORT and HOST that it was started with.'

/**
 * @param options.instance the address of the instance's private API.
 * @param options.rejected whether the view shows rejects, which `/events/` does not list.
 * @param options.nowMs epoch ms.
 */
export function tailNotices({
  instance,
  rejected,
  nowMs,
}: {
  readonly instance: string
  readonly rejected: boolean
  readonly nowMs: () => number
}): TailNotices {
  const view = () => `${new Date(nowMs()).toISOString()} the live view of ${instance}`
  const meanwhile = rejected ? '/events/ and /rejected_events/' : '/events/'
  return {
    lost: reason => `${view()} was interrupted: ${reason}. Reconnecting; to see what you missed, read ${meanwhile}`,
    back: afterMs => `${view()} reconnected after ${Math.ceil(afterMs / 1_000)} s`,
    ended: reason => `${view()} ended: ${reason}`,
    unopened: reason =>
      `The live view of ${instance} cannot be opened: ${reason}${nothingThere.test(reason) ? remedy : ''}`,
  }
}
