// State in memory, for unit tests of services: the data shared by the memory stores. Rows have text keys in maps, so
// that any client text, even `__proto__`, is only text.

import type { Group, GroupType } from '#core/groups/group.ts'
import type { DistinctIdMapping, Person } from '#core/persons/person.ts'
import type { VisitorIdentify, VisitorSession } from '#core/processing/visitors.ts'
import type { Project } from '#core/project.ts'
import type { ChunkOutcome, IngestionWarning } from '#ports/state/chunk-store.ts'
import type { DeferredProject } from '#ports/state/worker-state.ts'

export interface MemoryState {
  revision: number
  projects: Map<number, Project>
  /** By `keyOf(project, uuid)`. */
  persons: Map<string, Person>
  /** By `keyOf(project, distinct id)`. */
  mappings: Map<string, DistinctIdMapping>
  /** By `keyOf(project, distinct id)`: the version for the next mapping of the id. */
  personless: Map<string, number>
  /** By `keyOf(project, person uuid, flag key)`: the hash key. */
  overrides: Map<string, string>
  /** By `keyOf(project, person uuid)`: ids of static cohorts. */
  memberships: Map<string, ReadonlySet<number>>
  groupTypes: readonly GroupType[]
  /** By `keyOf(project, type index, group key)`. */
  groups: Map<string, Group>
  /** By `keyOf(project, flag key)`: the time of the last call, for any key, since no flags are stored here. */
  lastCalls: Map<string, number>
  positions: Map<string, { ownerId: string; offset: number; committedAtMs: number | null }>
  /** By stream. */
  deferred: Map<string, readonly DeferredProject[]>
  /** Every warning, unsampled. */
  warnings: readonly IngestionWarning[]
  outcomes: readonly ChunkOutcome[]
  /** By `keyOf(project, hash, uuid)`. */
  identifies: Map<string, VisitorIdentify>
  /** By `keyOf(project, hash, identifies, offset)`. */
  sessions: Map<string, VisitorSession>
}

export function memoryState(projects: readonly Project[] = []): MemoryState {
  return {
    revision: 0,
    projects: new Map(projects.map(project => [project.id, project])),
    persons: new Map(),
    mappings: new Map(),
    personless: new Map(),
    overrides: new Map(),
    memberships: new Map(),
    groupTypes: [],
    groups: new Map(),
    lastCalls: new Map(),
    positions: new Map(),
    deferred: new Map(),
    warnings: [],
    outcomes: [],
    identifies: new Map(),
    sessions: new Map(),
  }
}

export function keyOf(...parts: readonly (number | string)[]): string {
  return JSON.stringify(parts)
}
