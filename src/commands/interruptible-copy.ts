// What `pennon backup` and `pennon restore` share: they show progress while they copy files, and clean up when stopped.

import type { Result } from '#core/result.ts'
import { formatBytes } from './format-bytes.ts'
import { refuse } from './refuse.ts'

/** A lower priority than that of a running instance, which must keep answering during a backup. */
export const backupNiceness = 10

interface CopyOptions {
  readonly signal: AbortSignal
  readonly checkStop: () => void
  readonly onProgress: (bytes: number, bytesInAll: number) => void
}

/**
 * Runs work that cleans up after itself when aborted. If the work returns an error, `refuse` prints it and exits. SIGINT or
 * SIGTERM aborts it; then this process prints a line and exits with code 1. If stderr is a terminal, progress is shown
 * there as one line that is overwritten.
 */
export async function runInterruptibleCopy<T>(
  what: string,
  work: (options: CopyOptions) => Promise<Result<T, string>>,
): Promise<T> {
  const { isTTY } = process.stderr
  process.umask(0o077)
  let isShown = false
  const onProgress = (bytes: number, bytesInAll: number) => {
    if (!isTTY) return
    isShown = true
    const percent = bytesInAll === 0 ? 100 : Math.min(100, Math.floor((100 * bytes) / bytesInAll))
    process.stderr.write(`\r${what} ${percent} %, ${formatBytes(bytes)} \u001b[K`)
  }
  const endProgress = () => {
    if (isShown) process.stderr.write('\r\u001b[K')
  }
  const stopping = new AbortController()
  const { signal } = stopping
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stopping.abort(new Error(name)))
  let done: Result<T, string>
  try {
    done = await work({ signal, checkStop: () => signal.throwIfAborted(), onProgress })
  } catch (cause) {
    if (cause !== signal.reason) throw cause
    endProgress()
    process.stderr.write('pennon: canceled; temporary files were removed\n')
    process.exit(1)
  } finally {
    endProgress()
  }
  return done.ok ? done.value : refuse(done.error)
}
