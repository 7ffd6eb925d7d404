// The subject store's contract in memory, for unit tests.

import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { SubjectStore } from '#ports/state/subject-store.ts'
import { keyOf, type MemoryState } from './memory-state.ts'

export function memorySubjectStore(state: MemoryState): SubjectStore & CookielessVisitors {
  return {
    findPerson(projectId, distinctId) {
      const mapping = state.mappings.get(keyOf(projectId, distinctId))
      const person = mapping && state.persons.get(keyOf(projectId, mapping.personUuid))
      if (person === undefined) return null
      return { uuid: person.uuid, properties: person.properties, createdAtMs: person.createdAtMs }
    },
    findStaticCohorts(projectId, distinctId) {
      const mapping = state.mappings.get(keyOf(projectId, distinctId))
      return (mapping && state.memberships.get(keyOf(projectId, mapping.personUuid))) ?? new Set()
    },
    countIdentifies: (projectId, hash) =>
      [...state.identifies.values()].filter(row => row.projectId === projectId && row.hash === hash).length,
    findGroup(projectId, groupTypeIndex, groupKey) {
      const group = state.groups.get(keyOf(projectId, groupTypeIndex, groupKey))
      return group === undefined ? null : { properties: group.properties }
    },
  }
}
