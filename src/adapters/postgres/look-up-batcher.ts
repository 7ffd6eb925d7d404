// Batches look-ups by name: into one batch go all look-ups of one turn of the event loop, or all that arrived while the
// store was busy. A name that is requested twice is looked up once. When more look-ups wait than fit into a batch, projects
// take turns. The caller provides the query.

import { setImmediate as nextTurn } from 'node:timers'
import { FairQueue } from '#core/fair-queue.ts'
import { PortError, QueueFullError } from '#ports/port-error.ts'

export interface LookUpBatcher<Name, Found> {
  /** @param key identifies the name. @returns null when it is not found; rejects when the store cannot be reached. */
  find(key: string, name: Name): Promise<Found | null>
}

/** The most names in one statement. */
const togetherMax = 500
/**
 * The most waiting look-ups. One more displaces the last look-up of the project that has the most; its evaluation runs
 * without it.
 */
const waitingMax = 10_000

interface Waiting<Name, Found> {
  readonly sender: string
  readonly bytes: number
  readonly key: string
  readonly name: Name
  readonly found: Promise<Found | null>
  readonly resolve: (found: Found | null) => void
  readonly reject: (cause: unknown) => void
}

/**
 * @param underWayMax how many of `findAll` may run at once.
 * @param senderOf the project of a look-up.
 * @param findAll returns the answers in the order of the names; a PortError in place of an answer fails only the look-up of
 * that name.
 */
export function createLookUpBatcher<Name, Found>(
  underWayMax: number,
  senderOf: (name: NoInfer<Name>) => string,
  findAll: (names: readonly Name[]) => Promise<readonly (Found | PortError | null)[]>,
): LookUpBatcher<Name, Found> {
  const queue = new FairQueue<Waiting<Name, Found>>({ jobCountMax: waitingMax, bytesMax: waitingMax })
  const waiting = new Map<string, Waiting<Name, Found>>()
  let isTurnEndAwaited = false
  let underWay = 0

  return {
    find(key, name) {
      const known = waiting.get(key)
      if (known !== undefined) return known.found
      const { promise: found, resolve, reject } = Promise.withResolvers<Found | null>()
      const entry = { sender: senderOf(name), bytes: 1, key, name, found, resolve, reject }
      waiting.set(key, entry)
      for (const refused of queue.push(entry)) {
        waiting.delete(refused.key)
        refused.reject(new QueueFullError('state', 'timeout'))
      }
      if (!isTurnEndAwaited && underWay < underWayMax) {
        isTurnEndAwaited = true
        nextTurn(lookUpWaiting)
      }
      return found
    },
  }

  function lookUpWaiting(): void {
    isTurnEndAwaited = false
    while (waiting.size > 0 && underWay < underWayMax) void lookUpBatch(takeBatch())
  }

  function takeBatch(): Waiting<Name, Found>[] {
    const some: Waiting<Name, Found>[] = []
    while (some.length < togetherMax) {
      const entry = queue.shift()
      if (entry === undefined) break
      waiting.delete(entry.key)
      some.push(entry)
    }
    return some
  }

  async function lookUpBatch(entries: readonly Waiting<Name, Found>[]): Promise<void> {
    underWay++
    try {
      const found = await findAll(entries.map(({ name }) => name))
      for (const [index, entry] of entries.entries()) {
        const answer = found[index]!
        if (answer instanceof PortError) entry.reject(answer)
        else entry.resolve(answer)
      }
    } catch (cause) {
      for (const entry of entries) entry.reject(cause)
      // Also fails the look-ups that still wait: they would wait just as long for the same failure.
      waiting.clear()
      for (const entry of queue.clear()) entry.reject(cause)
    } finally {
      underWay--
      lookUpWaiting()
    }
  }
}
