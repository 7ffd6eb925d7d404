// Finds which distinct ids are connected because some event links them, whether or not the link was made.

import { LinkedIds } from '#core/processing/history/linked-ids.ts'
import type { EventHistory } from '#ports/events/event-history.ts'
import { isQueryFailure, retryQuery } from './query-failures.ts'

/** A larger set of connected ids is not read: anybody with the project's key can link ids without end. */
const componentIdsMax = 10_000

export interface ConnectedIds<Item> {
  /** Sets of connected items, each complete: those that were asked for and those that are linked with them. */
  readonly found: readonly (readonly Item[])[]
  /** Sets whose links are too many, or cannot be read, with the items known so far. */
  readonly unreadable: readonly (readonly Item[])[]
}

/** @throws PortError other than for a query that may never succeed. */
export async function findConnectedIds(
  projectId: number,
  distinctIds: readonly string[],
  deps: { readonly events: Pick<EventHistory, 'findLinks'>; readonly random: () => number },
  signal: AbortSignal,
): Promise<ConnectedIds<string>> {
  const linked = new LinkedIds()
  /** Ids whose links the event store cannot list. */
  const unlisted = new Set<string>()
  let open = distinctIds.filter(id => linked.add(id))
  while (open.length > 0 && !signal.aborted) {
    const isReadable = createReadableCheck()
    const asked = open.filter(id => isReadable(linked.of(id)))
    open = []
    await collectLinks(asked)
  }
  const isReadable = createReadableCheck()
  const { found = [], unreadable = [] } = Object.groupBy(linked.sets(), each =>
    isReadable(each) ? 'found' : 'unreadable',
  )
  return { found, unreadable }

  function createReadableCheck(): (ids: readonly string[]) => boolean {
    const unreadable = new Set(Array.from(unlisted, id => linked.of(id)))
    return ids => ids.length <= componentIdsMax && !unreadable.has(ids)
  }

  async function collectLinks(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const links = await findLinksOrNull(ids)
    if (links === null) {
      if (ids.length === 1) unlisted.add(ids[0]!)
      const middle = Math.ceil(ids.length / 2)
      if (ids.length > 1) for (const half of [ids.slice(0, middle), ids.slice(middle)]) await collectLinks(half)
      return
    }
    for (const { distinctId, linkedId } of links) {
      open.push(...[distinctId, linkedId].filter(id => linked.add(id)))
      linked.link(distinctId, linkedId)
    }
  }

  /** Null if the query failed because of its size. */
  async function findLinksOrNull(ids: readonly string[]) {
    const find = () => deps.events.findLinks(projectId, ids)
    try {
      return await (ids.length > 1 ? find() : retryQuery(find, { random: deps.random, signal }))
    } catch (cause) {
      if (!isQueryFailure(cause) || signal.aborted) throw cause
      return null
    }
  }
}

/**
 * The ids of all links between these ids and others; such links are newer than the search that found these ids connected.
 */
export async function findNewlyLinkedIds(
  projectId: number,
  distinctIds: readonly string[],
  { events }: { readonly events: Pick<EventHistory, 'findLinks'> },
): Promise<readonly string[]> {
  const asked = new Set(distinctIds)
  const links = await events.findLinks(projectId, distinctIds)
  return links
    .filter(({ distinctId, linkedId }) => !asked.has(distinctId) || !asked.has(linkedId))
    .flatMap(({ distinctId, linkedId }) => [distinctId, linkedId])
}
