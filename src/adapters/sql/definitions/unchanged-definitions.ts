// Definitions that a caller already holds are neither read nor parsed again. A flag or a cohort is identified by its id,
// which is never reused, and its version, which every write raises. Both sides of a state thread, the caller and the
// thread, use these types.

import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import type { DefinitionChanges, GetHeldDefinitions } from '#ports/state/definition-store.ts'

type Versioned = { readonly id: number; readonly version: number }
type VersionedList = 'flags' | 'cohorts'

/** The ids and versions of one project's definitions that the caller holds. */
export type DefinitionVersions = { readonly [L in VersionedList]: readonly (readonly [id: number, version: number])[] }

/** The definitions of a project, without the flags and cohorts that the caller already holds. */
export interface ProjectDelta {
  /** Has only the flags and cohorts that the caller does not hold in their current version, by ascending id. */
  readonly read: ProjectDefinitions
  /** Ids that the caller holds and that no longer exist. */
  readonly gone: { readonly [L in VersionedList]: readonly number[] }
}

export type DefinitionDelta = Omit<DefinitionChanges, 'projects'> & { readonly projects: readonly ProjectDelta[] }

export function listDefinitionVersions({ flags, cohorts }: ProjectDefinitions): DefinitionVersions {
  const toVersions = (items: readonly Versioned[]) => items.map(({ id, version }) => [id, version] as const)
  return { flags: toVersions(flags), cohorts: toVersions(cohorts) }
}

/** @param held the definitions that the caller held when it asked. */
export function addUnchangedDefinitions(changes: DefinitionDelta, held: GetHeldDefinitions): DefinitionChanges {
  const projects = changes.projects.map(({ read, gone }) => {
    const before = held(read.project.id)
    if (before === null) return read
    return {
      ...read,
      flags: mergeHeld(before.flags, read.flags, gone.flags),
      cohorts: mergeHeld(before.cohorts, read.cohorts, gone.cohorts),
    }
  })
  return { ...changes, projects }
}

/** Merges the held and the newly read items by ascending id, which is the order of both lists. */
function mergeHeld<T extends Versioned>(held: readonly T[], read: readonly T[], gone: readonly number[]): readonly T[] {
  if (read.length === 0 && gone.length === 0) return held
  const replaced = new Set([...gone, ...read.map(({ id }) => id)])
  return [...held.filter(({ id }) => !replaced.has(id)), ...read].sort((a, b) => a.id - b.id)
}
