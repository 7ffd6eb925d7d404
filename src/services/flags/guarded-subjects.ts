// Looks up stored subjects through the guard of their store.

import type { PropertyBag } from '#core/json.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { SubjectPerson, SubjectStore, WantedNames } from '#ports/state/subject-store.ts'
import type { Loaded, StoreGuard } from './store-guard.ts'

export interface GuardedSubjects {
  findPerson(projectId: number, distinctId: string, wanted: WantedNames): MaybePromise<Loaded<SubjectPerson | null>>
  findStaticCohorts(projectId: number, distinctId: string): MaybePromise<Loaded<ReadonlySet<number>>>
  findGroup(
    projectId: number,
    typeIndex: number,
    key: string,
    wanted: WantedNames,
  ): MaybePromise<Loaded<{ properties: PropertyBag } | null>>
}

export function guardSubjects(subjects: SubjectStore, guard: StoreGuard): GuardedSubjects {
  return {
    findPerson: (projectId, distinctId, wanted) => guard.run(() => subjects.findPerson(projectId, distinctId, wanted)),
    findStaticCohorts: (projectId, distinctId) => guard.run(() => subjects.findStaticCohorts(projectId, distinctId)),
    findGroup: (projectId, typeIndex, key, wanted) =>
      guard.run(() => subjects.findGroup(projectId, typeIndex, key, wanted)),
  }
}
