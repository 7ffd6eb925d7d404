// Look-ups by name that are answered together: all of one turn of the event loop, or all that came while the store was
// busy, in one go. The same name asked twice is looked up once. How the store is asked is the caller's.

import { setImmediate as nextTurn } from 'node:timers'
import { PortError } from '#ports/port-error.ts'

export interface LookUps<Name, Found> {
  /** @param key tells names apart. @returns null when there is none; rejects when the store could not be asked. */
  find(key: string, name: Name): Promise<Found | null>
}

/** Names of one statement. */
const togetherMax = 500
/** Look-ups that may wait for one; beyond, they fail at once, and the evaluation goes on without. */
const waitingMax = 10_000

interface Waiting<Name, Found> {
  readonly name: Name
  readonly found: Promise<Found | null>
  readonly resolve: (found: Found | null) => void
  readonly reject: (cause: unknown) => void
}

/**
 * @param underWayMax how many of `findAll` may run at once.
 * @param findAll answers in the order of the names; a PortError in a place is that name's failure alone.
 */
export function lookUpTogether<Name, Found>(
  underWayMax: number,
  findAll: (names: readonly Name[]) => Promise<readonly (Found | PortError | null)[]>,
): LookUps<Name, Found> {
  let waiting = new Map<string, Waiting<Name, Found>>()
  let isTurnEndAwaited = false
  let underWay = 0

  return {
    find(key, name) {
      const known = waiting.get(key)
      if (known !== undefined) return known.found
      if (waiting.size >= waitingMax)
        return Promise.reject(new PortError('state', 'timeout', new Error('too many wait')))
      const { promise: found, resolve, reject } = Promise.withResolvers<Found | null>()
      waiting.set(key, { name, found, resolve, reject })
      if (!isTurnEndAwaited && underWay < underWayMax) {
        isTurnEndAwaited = true
        nextTurn(endTurn)
      }
      return found
    },
  }

  function endTurn(): void {
    isTurnEndAwaited = false
    while (waiting.size > 0 && underWay < underWayMax) void askFor(takeSome())
  }

  function takeSome(): Waiting<Name, Found>[] {
    if (waiting.size <= togetherMax) {
      const all = [...waiting.values()]
      waiting = new Map()
      return all
    }
    const some = [...waiting].slice(0, togetherMax)
    for (const [key] of some) waiting.delete(key)
    return some.map(([, entry]) => entry)
  }

  async function askFor(entries: readonly Waiting<Name, Found>[]): Promise<void> {
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
      // Whoever waits would only wait as long for the same.
      for (const entry of waiting.values()) entry.reject(cause)
      waiting = new Map()
    } finally {
      underWay--
      endTurn()
    }
  }
}
