// Queries that the event store cannot answer: one distinct id may have more events than the store can evaluate. Whatever
// depends on them stays as it is, so that the rest of the job and later jobs can proceed.

import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import { computeStoreBackOffMs, waitOrStop } from '../shared/wait-or-stop.ts'

const tryCountMax = 3

/**
 * Whether a failure is caused by the query itself, so that retrying may never succeed. The engine does not always enforce
 * its time limit, so a timeout counts as well: a caller that gives up because of a timeout tries smaller queries first.
 */
export function isQueryFailure(cause: unknown): boolean {
  if (cause instanceof QueryTooLargeError) return true
  return cause instanceof PortError && cause.port === 'event-store' && cause.code === 'timeout'
}

/** Repeats a query that cannot be made smaller: a busy store may answer the next time. @throws the last error of `ask`. */
export async function retryQuery<Answer>(
  ask: () => Promise<Answer>,
  { random, signal }: { readonly random: () => number; readonly signal: AbortSignal },
): Promise<Answer> {
  for (let attempt = 1; ; attempt++)
    try {
      return await ask()
    } catch (cause) {
      if (!isQueryFailure(cause) || signal.aborted || attempt === tryCountMax) throw cause
      await waitOrStop(computeStoreBackOffMs(attempt, random()), signal)
    }
}
