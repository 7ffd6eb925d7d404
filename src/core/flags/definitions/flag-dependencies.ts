// Orders flags that test other flags, or cohorts that refer to other cohorts, and finds those that cannot be decided:
// something that they depend on is missing, or they are caught in a cycle. Works on positions and ids only. Source:
// docs/wire/evaluation.md 5.11, 5.12.

export interface DependencyOrder {
  /** Positions, each after the positions that it depends on; cyclic positions are left out. */
  readonly order: readonly number[]
  /** Flags that depend, directly or not, on a flag that does not exist. */
  readonly missing: ReadonlySet<number>
  /** Members of a cycle, and flags that depend on a cycle. */
  readonly cyclic: ReadonlySet<number>
}

/**
 * @param dependencyIds per position, the ids that the flag tests; undefined for a flag that takes no part because it is
 *   inactive or unreadable.
 * @param positionOfId the flags that exist, including those that take no part.
 */
export function orderByDependencies(
  dependencyIds: readonly (readonly number[] | undefined)[],
  positionOfId: ReadonlyMap<number, number>,
): DependencyOrder {
  const order: number[] = []
  const missing = new Set<number>()
  const waiting = new Map<number, number>()
  const dependents = new Map<number, number[]>()
  const ready: number[] = []

  for (const [position, ids] of dependencyIds.entries()) {
    if (ids === undefined) continue
    let openCount = 0
    for (const id of new Set(ids)) {
      const dependency = positionOfId.get(id)
      if (dependency === undefined) missing.add(position)
      else if (dependencyIds[dependency] !== undefined) {
        openCount++
        dependents.getOrInsertComputed(dependency, () => []).push(position)
      }
    }
    if (openCount === 0) ready.push(position)
    else waiting.set(position, openCount)
  }

  for (let next = 0; next < ready.length; next++) {
    const position = ready[next]!
    order.push(position)
    for (const dependent of dependents.get(position) ?? []) {
      if (missing.has(position)) missing.add(dependent)
      const left = waiting.get(dependent)! - 1
      if (left > 0) waiting.set(dependent, left)
      else {
        waiting.delete(dependent)
        ready.push(dependent)
      }
    }
  }
  return { order, missing, cyclic: new Set(waiting.keys()) }
}

/** An id that no flag has. */
const unusedFlagId = -1

/**
 * The id of the flag that a filter of type `flag` tests, read from the filter's key, which must be digits. An empty text
 * and any other whole number give an id that no flag has; any other key is not a dependency and gives null.
 */
export function parseDependencyId(filterKey: string): number | null {
  if (/^\d{1,15}$/.test(filterKey)) return Number(filterKey)
  return filterKey === '' || /^-?\d+$/.test(filterKey) ? unusedFlagId : null
}

/**
 * The flags that must be decided to decide a flag, in order, the flag itself last; empty when one of them is missing or
 * caught in a cycle.
 * @param testedIds returns the ids that a flag tests; undefined when the flag does not exist.
 * Source: docs/wire/evaluation.md 7.1.
 */
export function findDependencyChain(
  flagId: number,
  testedIds: (flagId: number) => readonly number[] | undefined,
): readonly number[] {
  const chain: number[] = []
  const states = new Map<number, 'open' | 'done'>()
  const path: { readonly id: number; readonly ids: readonly number[]; next: number }[] = []
  const enter = (id: number): boolean => {
    const ids = testedIds(id)
    if (ids === undefined || states.get(id) === 'open') return false
    if (states.get(id) === 'done') return true
    states.set(id, 'open')
    path.push({ id, ids, next: 0 })
    return true
  }
  if (!enter(flagId)) return []
  while (path.length > 0) {
    const step = path.at(-1)!
    if (step.next < step.ids.length) {
      if (!enter(step.ids[step.next++]!)) return []
      continue
    }
    path.pop()
    states.set(step.id, 'done')
    chain.push(step.id)
  }
  return chain
}
