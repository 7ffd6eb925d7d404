// Queries the event store for the inputs of an undo, in batches that it can answer. One distinct id may have more events
// than it can evaluate: whatever depends on that id stays as it is, so that the rest of the job and later jobs can proceed.

import { foundCharsMax, foundRowsMax } from '#ports/events/event-history.ts'
import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import { storeBackOffMs, waitOrStop } from '../shared/wait-or-stop.ts'

/** How often a query about a single id is tried: a busy store may answer the next time. */
const tryCountOfOne = 3

/**
 * Whether a failure is caused by the query itself, so that retrying may never succeed. The engine does not always enforce its
 * time limit, so a timeout counts as well: a caller that gives up because of one tries smaller queries first.
 */
export function isQueryFailure(cause: unknown): boolean {
  if (cause instanceof QueryTooLargeError) return true
  return cause instanceof PortError && cause.port === 'event-store' && cause.code === 'timeout'
}

/**
 * Queries all items at once, and on failure their halves.
 * @throws the last error of `find` for a single item; `QueryTooLargeError` if the result is larger than may be read at once.
 */
export async function findInHalves<Item, Row>(
  items: readonly Item[],
  find: (items: readonly Item[]) => Promise<readonly Row[]>,
  options: {
    readonly random: () => number
    readonly signal: AbortSignal
    /** The size of a row, without its fixed-size parts; not counted if absent. */
    readonly charsOf?: (row: Row) => number
  },
): Promise<readonly Row[]> {
  const { random, signal, charsOf = () => 0 } = options
  const found: Row[] = []
  let charCount = 0
  await ask(items)
  return found

  async function ask(some: readonly Item[]): Promise<void> {
    const rows = await findOrNull(some)
    if (rows === null) {
      const middle = Math.ceil(some.length / 2)
      await ask(some.slice(0, middle))
      return ask(some.slice(middle))
    }
    for (const row of rows) {
      found.push(row)
      charCount += charsOf(row)
    }
    if (found.length > foundRowsMax || charCount > foundCharsMax)
      throw new QueryTooLargeError('event-store', 'full', new Error('the result is larger than may be read at once'))
  }

  /** Null if the query failed for several items. */
  async function findOrNull(some: readonly Item[]): Promise<readonly Row[] | null> {
    for (let attempt = 1; ; attempt++)
      try {
        return await find(some)
      } catch (cause) {
        if (!isQueryFailure(cause) || signal.aborted) throw cause
        if (some.length > 1) return null
        if (attempt === tryCountOfOne) throw cause
        await waitOrStop(storeBackOffMs(attempt, random()), signal)
      }
  }
}
