// Waits for a store that is down: which calls to repeat, how long to wait in between, and what to report.

import { PortError } from '#ports/port-error.ts'
import { computeStoreBackOffMs, waitOrStop } from '../shared/wait-or-stop.ts'
import type { ChunkDeps } from './chunk-deps.ts'

type WaitDeps = Pick<ChunkDeps, 'metrics' | 'logger' | 'random' | 'signal'>

/** Repeats the call while the event store is down; nothing is skipped. @returns null if stopped while waiting. */
export function retryWhileStoreDown<T>(
  call: () => Promise<T>,
  deps: WaitDeps & Pick<ChunkDeps, 'enterState' | 'slowStoreMs'>,
): Promise<T | null> {
  const onDown = () => deps.enterState('waiting_for_event_store')
  const callTimed = async () => {
    const slow = setTimeout(onDown, deps.slowStoreMs)
    try {
      return await call()
    } finally {
      clearTimeout(slow)
    }
  }
  return retryWhileDown(callTimed, deps, { onDown })
}

/** Repeats the call while a store is down. @returns null if stopped while waiting. */
export async function retryWhileDown<T>(
  call: () => Promise<T>,
  deps: WaitDeps,
  { onDown, isDown = isStoreDown }: { onDown?: () => void; isDown?: (cause: unknown) => cause is PortError } = {},
): Promise<T | null> {
  for (let attempt = 0; !deps.signal.aborted; attempt++) {
    try {
      return await call()
    } catch (cause) {
      if (!isDown(cause)) throw cause
      onDown?.()
      await waitForStore(cause, attempt, deps)
    }
  }
  return null
}

/** Whether repeating the failed call may help. Any other error is caused by the contents of the chunk, or by a bug. */
export function isStoreDown(cause: unknown): cause is PortError {
  return cause instanceof PortError && (cause.retryable || cause.code === 'full')
}

/** Reports the failure, and waits before the next try. */
export function waitForStore(cause: PortError, attempt: number, deps: WaitDeps): Promise<void> {
  deps.metrics.dependencyFailures.inc({ port: cause.port, code: cause.code })
  if (attempt % 10 === 0) deps.logger.warn({ err: cause, attempt }, 'processing is waiting for a store')
  return waitBeforeRetry(attempt, deps)
}

export function waitBeforeRetry(
  attempt: number,
  { random, signal }: Pick<WaitDeps, 'random' | 'signal'>,
): Promise<void> {
  return waitOrStop(computeStoreBackOffMs(attempt, random()), signal)
}
