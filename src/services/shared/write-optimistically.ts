// Runs a write that depends on data read before, and repeats it, including the read, as long as another writer came first.

import { PortError } from '#ports/port-error.ts'

/** One writer succeeds in each round, so this many may write at the same time without a failure. */
const triesMax = 30
/** Few tries are enough, because the store itself repeats what it rolled back because of another transaction. */
const conflictTriesMax = 5

/**
 * @param write reads what is stored now, decides, and writes. @param isLate whether a result of `write` means that another
 * writer came first.
 * @returns the first result that is not late, or the last one when all are.
 */
export async function writeOptimistically<T>(write: () => Promise<T>, isLate: (written: T) => boolean): Promise<T> {
  for (let tries = 1; ; tries++) {
    const written = await write()
    if (tries === triesMax || !isLate(written)) return written
  }
}

/** Repeats a write that throws a PortError `conflict` when another writer came first. @throws what the last try threw. */
export async function retryOnConflict<T>(write: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++)
    try {
      return await write()
    } catch (cause) {
      if (!(cause instanceof PortError) || cause.code !== 'conflict' || tries === conflictTriesMax) throw cause
    }
}
