// Lists what to write, from a chunk's working copy (`chunk-state.ts`): everything that differs from the loaded state, and
// the overrides for rows that are already stored.

import type { PersonIdOverride } from '../events/stored-event.ts'
import type { Group, GroupType } from '../groups/group.ts'
import type { DistinctIdMapping, Person } from '../persons/person.ts'
import type { ChunkChanges, Versioned } from './chunk.ts'
import type { ProjectState, WorkingMapping, WorkingPerson } from './chunk-state.ts'

type StateChanges = Omit<ChunkChanges, 'calledFlags' | 'warnings' | 'outcomes' | 'imports'>

/**
 * Collects the changes to commit and the overrides to write to the event store.
 * @param publishedOverrides overrides that earlier, uncommitted tries of the chunk wrote to the event store.
 */
export function collectStateChanges(
  projects: ReadonlyMap<number, ProjectState>,
  publishedOverrides: Iterable<PersonIdOverride> = [],
): {
  changes: StateChanges
  overrides: PersonIdOverride[]
} {
  for (const override of publishedOverrides)
    supersede(projects.get(override.projectId)?.mappings.get(override.distinctId), override)
  const persons: Versioned<Person>[] = []
  const deletedPersons: StateChanges['deletedPersons'][number][] = []
  const mappings: Versioned<DistinctIdMapping>[] = []
  const personlessDistinctIds: { projectId: number; distinctId: string }[] = []
  const neverPersonlessDistinctIds: { projectId: number; distinctId: string }[] = []
  const groupTypes: GroupType[] = []
  const usedGroupTypes: GroupType[] = []
  const groups: Versioned<Group>[] = []
  const overrides: PersonIdOverride[] = []
  for (const [projectId, state] of projects) {
    for (const person of state.persons) {
      if (person.mergedInto !== null) continue
      addMergedAway(projectId, person, deletedPersons)
      if (person.changed) {
        const { uuid, properties, marks, createdAtMs, isIdentified, version, lastSeenAtMs, loadedVersion } = person
        const row = { projectId, uuid, properties, marks, createdAtMs, isIdentified, version, lastSeenAtMs }
        persons.push({ row, loadedVersion })
      }
    }
    for (const { distinctId, person, version, loadedVersion, changed } of state.mappings.values()) {
      if (!changed) continue
      mappings.push({ row: { projectId, distinctId, personUuid: person.uuid, version }, loadedVersion })
      if (version > 0 && !state.isStaging) overrides.push({ projectId, distinctId, personId: person.uuid, version })
    }
    for (const distinctId of state.newPersonlessIds) personlessDistinctIds.push({ projectId, distinctId })
    for (const distinctId of state.neverPersonlessIds) neverPersonlessDistinctIds.push({ projectId, distinctId })
    groupTypes.push(...state.newGroupTypes)
    usedGroupTypes.push(...state.usedGroupTypes())
    for (const group of state.changedGroups()) groups.push(group)
  }
  return {
    changes: {
      persons,
      deletedPersons,
      mappings,
      personlessDistinctIds,
      neverPersonlessDistinctIds,
      groupTypes,
      usedGroupTypes,
      groups,
    },
    overrides,
  }
}

/**
 * Raises a mapping's version above the version of an override from an uncommitted try: another worker's commit may have
 * mapped the id elsewhere since, and the override with the highest version counts.
 */
function supersede(mapping: WorkingMapping | undefined, published: PersonIdOverride): void {
  if (mapping === undefined || mapping.version > published.version) return
  if (mapping.version === published.version && mapping.person.uuid === published.personId) return
  mapping.version = published.version + 1
  mapping.changed = true
}

/**
 * Adds the persons that were merged away, the nearest to the survivor first: if two of them have an assignment for the same
 * flag, the nearer person's assignment wins, as if each merge had been in a separate chunk.
 */
function addMergedAway(
  projectId: number,
  { uuid: survivorUuid, absorbed }: WorkingPerson,
  to: StateChanges['deletedPersons'][number][],
): void {
  if (absorbed === null) return
  const waiting = absorbed.toReversed()
  for (let person = waiting.pop(); person !== undefined; person = waiting.pop()) {
    const { uuid, loadedVersion } = person
    if (loadedVersion !== null) to.push({ projectId, uuid, survivorUuid, loadedVersion })
    for (const each of person.absorbed?.toReversed() ?? []) waiting.push(each)
  }
}
