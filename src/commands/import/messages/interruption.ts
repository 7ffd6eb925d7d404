// Ctrl-C or SIGTERM during a long command: it ends with a message that says how to continue, and exit code 130.

import { toPrintable } from '#core/printable.ts'
import { JobPaused } from '#importer/job/job-paused.ts'

const signals = ['SIGINT', 'SIGTERM'] as const
/**
 * Work that has not ended by itself after this time, such as a wait for a disk, is abandoned: being killed at any moment
 * does no harm.
 */
const graceMs = 4_000

/**
 * Runs work with a signal that the first Ctrl-C or SIGTERM aborts; a second one ends the process as usual. Exits the
 * process once the abort has ended the work. @param message says how to continue.
 */
export async function runUntilInterrupted<T>(
  message: () => string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const interrupted = new AbortController()
  const interrupt = () => {
    if (interrupted.signal.aborted) return
    interrupted.abort(new JobPaused('paused'))
    setTimeout(() => endInterrupted(message(), true), graceMs).unref()
  }
  const stopListening = onSignals(interrupt)
  try {
    return await work(interrupted.signal)
  } catch (error) {
    if (!isInterruption(error, interrupted.signal)) throw error
    return endInterrupted(message())
  } finally {
    stopListening()
  }
}

/** @param at the folder of the job, quoted for a shell. */
export function describePause({ at }: { readonly at: string }): string {
  return `paused. Progress is kept. To continue: pennon import run ${at}`
}

/** Whether an error is only the interruption, which timers and requests report as an AbortError. */
export function isInterruption(error: unknown, signal: AbortSignal): boolean {
  if (error instanceof JobPaused) return true
  return signal.aborted && error instanceof Error && error.name === 'AbortError'
}

/** @param isStuck whether the work did not end by itself, so it may be waiting for a disk that does not answer. */
function endInterrupted(message: string, isStuck = false): never {
  process.stderr.write(`pennon: ${toPrintable(message)}\n`)
  // `process.exit` would wait for a disk that does not answer. Being killed by SIGINT does not; a shell sees 130, too.
  if (isStuck && process.getActiveResourcesInfo().some(name => name.startsWith('FSReq'))) {
    process.removeAllListeners('SIGINT')
    process.kill(process.pid, 'SIGINT')
  }
  process.exit(130)
}

/**
 * Makes Ctrl-C and SIGTERM exit at once, for a command that stores nothing before its end. @returns a function to undo
 * this.
 */
export function exitOnInterruption(message: string): () => void {
  return onSignals(() => endInterrupted(message, true))
}

function onSignals(listener: () => void): () => void {
  for (const name of signals) process.once(name, listener)
  return () => {
    for (const name of signals) process.off(name, listener)
  }
}
