// Finds which distinct ids have to do with each other, because some event links them, whether or not the link was made.

import type { EventHistory } from '#ports/events/event-history.ts'
import { askAgain, isQueryFailure } from './query-failures.ts'

/** A larger one is not read: anybody with the project's key can link ids without end. */
const componentIdsMax = 10_000

export interface Components<Item> {
  /** Each with all its items, those that were asked for and those that are linked with them. */
  readonly found: readonly (readonly Item[])[]
  /** Those whose links are too many, or cannot be read, with the items known so far. */
  readonly unreadable: readonly (readonly Item[])[]
}

interface Component {
  ids: string[]
  isUnreadable: boolean
}

/** @throws PortError other than for a query that may never succeed. */
export async function findComponents(
  projectId: number,
  distinctIds: readonly string[],
  deps: { readonly events: Pick<EventHistory, 'findLinks'>; readonly random: () => number },
  signal: AbortSignal,
): Promise<Components<string>> {
  const componentOf = new Map<string, Component>()
  let open: string[] = []
  const add = (id: string) => {
    if (componentOf.has(id)) return
    componentOf.set(id, { ids: [id], isUnreadable: false })
    open.push(id)
  }
  for (const id of distinctIds) add(id)
  while (open.length > 0 && !signal.aborted) {
    const asked = open.filter(id => !componentOf.get(id)!.isUnreadable)
    open = []
    await ask(asked)
  }
  const all = new Set(componentOf.values())
  return {
    found: [...all].filter(({ isUnreadable }) => !isUnreadable).map(({ ids }) => ids),
    unreadable: [...all].filter(({ isUnreadable }) => isUnreadable).map(({ ids }) => ids),
  }

  async function ask(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const links = await findLinksOrNull(ids)
    if (links === null) {
      if (ids.length === 1) componentOf.get(ids[0]!)!.isUnreadable = true
      const middle = Math.ceil(ids.length / 2)
      if (ids.length > 1) for (const half of [ids.slice(0, middle), ids.slice(middle)]) await ask(half)
      return
    }
    for (const { distinctId, linkedId } of links) {
      add(distinctId)
      add(linkedId)
      join(componentOf.get(distinctId)!, componentOf.get(linkedId)!)
    }
  }

  /** Null if the query failed for its size. */
  async function findLinksOrNull(ids: readonly string[]) {
    const find = () => deps.events.findLinks(projectId, ids)
    try {
      return await (ids.length > 1 ? find() : askAgain(find, { random: deps.random, signal }))
    } catch (cause) {
      if (!isQueryFailure(cause) || signal.aborted) throw cause
      return null
    }
  }

  function join(a: Component, b: Component): void {
    if (a === b) return
    const [large, small] = a.ids.length < b.ids.length ? [b, a] : [a, b]
    for (const id of small.ids) {
      large.ids.push(id)
      componentOf.set(id, large)
    }
    large.isUnreadable ||= small.isUnreadable || large.ids.length > componentIdsMax
  }
}

/** Those of these ids, and others, that an event links with each other: it came after these were found to be all linked ids. */
export async function findOpenIds(
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
