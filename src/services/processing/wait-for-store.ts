// Waits for a store that is down: which calls to repeat, how long to wait in between, and what to report.

import { PortError } from '#ports/port-error.ts'
import { storeBackOffMs, waitOrStop } from '../shared/wait-or-stop.ts'
import type { ChunkDeps } from './chunk-deps.ts'

type WaitDeps = Pick<ChunkDeps, 'metrics' | 'logger' | 'random' | 'signal' | 'enterState' | 'slowStoreMs'>

/** Repeats the call while the event store is down; nothing is skipped. @returns null if stopped while waiting. */
export async function retryWhileStoreDown<T>(call: () => Promise<T>, deps: WaitDeps): Promise<T | null> {
  for (let attempt = 0; !deps.signal.aborted; attempt++) {
    const slow = setTimeout(() => deps.enterState('waiting_for_event_store'), deps.slowStoreMs)
    try {
      return await call()
    } catch (cause) {
      if (!isStoreDown(cause)) throw cause
      deps.enterState('waiting_for_event_store')
      reportStoreDown(cause, attempt, deps)
      await waitBeforeRetry(attempt, deps)
    } finally {
      clearTimeout(slow)
    }
  }
  return null
}

/** Whether repeating the same try may help. Any other error is caused by the contents of the chunk, or by a bug. */
export function isStoreDown(cause: unknown): cause is PortError {
  return cause instanceof PortError && (cause.retryable || cause.code === 'full')
}

export function reportStoreDown(
  cause: PortError,
  attempt: number,
  { metrics, logger }: Pick<WaitDeps, 'metrics' | 'logger'>,
): void {
  metrics.dependencyFailures.inc({ port: cause.port, code: cause.code })
  if (attempt % 10 === 0) logger.warn({ err: cause, attempt }, 'processing is waiting for a store')
}

export function waitBeforeRetry(
  attempt: number,
  { random, signal }: Pick<WaitDeps, 'random' | 'signal'>,
): Promise<void> {
  return waitOrStop(storeBackOffMs(attempt, random()), signal)
}
