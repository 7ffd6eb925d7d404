// Ctrl-C, or SIGTERM, at a command that takes long: whatever it is at, it ends with the words how to go on and exit code
// 130.

import { printable } from '#core/printable.ts'
import { JobPaused } from '#importer/job/job-paused.ts'

/** @returns a signal that the first of them aborts; a second one ends the process as usual. */
export function interruptible(): AbortSignal {
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => interrupted.abort(new JobPaused('paused')))
  return interrupted.signal
}

/** Whether a failure is but the interruption, which a timer or a request tells of in words of its own. */
export function isInterruption(error: unknown, signal: AbortSignal): boolean {
  if (error instanceof JobPaused) return true
  return signal.aborted && error instanceof Error && error.name === 'AbortError'
}

export function endInterrupted(words: string): never {
  process.stderr.write(`pennon: ${printable(words)}\n`)
  process.exit(130)
}

/** For a command that keeps nothing before its end, so that nothing has to be waited for. */
export function endAtInterruption(words: string): void {
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => endInterrupted(words))
}
