// Ctrl-C, or SIGTERM, at a command that takes long: whatever it is at, it ends with the words how to go on and exit code
// 130.

import { printable } from '#core/printable.ts'
import { JobPaused } from '#importer/job/job-paused.ts'

const signals = ['SIGINT', 'SIGTERM'] as const
/** What waits for a disk or a server, or in a way that takes no signal, is left alone: it may be killed at any moment. */
const graceMs = 4_000

/**
 * @param message says how to continue; called only if the work has not ended by itself a few seconds after the signal.
 * @returns a signal that the first of them aborts; a second one ends the process as usual.
 */
export function interruptible(message: () => string): AbortSignal {
  const interrupted = new AbortController()
  const interrupt = () => {
    if (interrupted.signal.aborted) return
    interrupted.abort(new JobPaused('paused'))
    setTimeout(() => endInterrupted(message(), true), graceMs).unref()
  }
  for (const name of signals) process.once(name, interrupt)
  return interrupted.signal
}

/** Whether a failure is but the interruption, which a timer or a request tells of in words of its own. */
export function isInterruption(error: unknown, signal: AbortSignal): boolean {
  if (error instanceof JobPaused) return true
  return signal.aborted && error instanceof Error && error.name === 'AbortError'
}

/** @param isStuck whether the work did not end by itself, so that it may wait for a disk that does not answer. */
export function endInterrupted(message: string, isStuck = false): never {
  process.stderr.write(`pennon: ${printable(message)}\n`)
  // An exit waits for such a disk too; the signal itself does not, and a shell sees 130 as well.
  if (isStuck && process.getActiveResourcesInfo().some(name => name.startsWith('FSReq'))) {
    process.removeAllListeners('SIGINT')
    process.kill(process.pid, 'SIGINT')
  }
  process.exit(130)
}

/** For a command that keeps nothing before its end, so that nothing has to be waited for. */
export function endAtInterruption(message: string): void {
  for (const name of signals) process.once(name, () => endInterrupted(message, true))
}
