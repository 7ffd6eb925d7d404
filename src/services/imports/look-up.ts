// Asks the event store what undoing a job stands on, in pieces that it can answer. Somebody may have sent more with one id
// than it can tell of: what stands on that is left as it is, so that the rest of the job, and later jobs, go on.

import { foundCharsMax, foundRowsMax } from '#ports/events/imported-rows.ts'
import { PortError, QueryTooLargeError } from '#ports/port-error.ts'
import { backOffMs, waitOrStop } from '../shared/back-off.ts'

/** How often a question about a single id is asked: a busy store may answer the next time. */
const tryCountOfOne = 3

/**
 * Whether a failure belongs to the question, so that it may come again however long one waits. The engine does not always
 * notice its own limit of time, so silence counts as well: a caller that leaves something for it asks something small first.
 */
export function isOfQuestion(cause: unknown): boolean {
  if (cause instanceof QueryTooLargeError) return true
  return cause instanceof PortError && cause.port === 'event-store' && cause.code === 'timeout'
}

/**
 * Asks about all items at once, and about halves of them where that fails.
 * @throws what `find` throws for a single item at last, and `QueryTooLargeError` when more is found than may be read at once.
 */
export async function findInHalves<Item, Row>(
  items: readonly Item[],
  find: (items: readonly Item[]) => Promise<readonly Row[]>,
  options: {
    readonly random: () => number
    readonly signal: AbortSignal
    /** Of a row, without what is the same in all; none when absent. */
    readonly charsOf?: (row: Row) => number
  },
): Promise<readonly Row[]> {
  const { random, signal, charsOf = () => 0 } = options
  const found: Row[] = []
  let charCount = 0
  await ask(items)
  return found

  async function ask(some: readonly Item[]): Promise<void> {
    const rows = await answerOf(some)
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
      throw new QueryTooLargeError('event-store', 'full', new Error('more is found than may be read at once'))
  }

  /** Null for too many items. */
  async function answerOf(some: readonly Item[]): Promise<readonly Row[] | null> {
    for (let attempt = 1; ; attempt++)
      try {
        return await find(some)
      } catch (cause) {
        if (!isOfQuestion(cause) || signal.aborted) throw cause
        if (some.length > 1) return null
        if (attempt === tryCountOfOne) throw cause
        await waitOrStop(backOffMs(attempt, random()), signal)
      }
  }
}
