// A person as the private API shows it.

import type { DistinctIdMapping, Person } from '#core/persons/person.ts'

export interface PersonView extends Omit<Person, 'marks'> {
  readonly id: number
  readonly distinctIds: readonly DistinctIdMapping[]
  readonly flagOverrides: readonly { readonly flagKey: string; readonly hashKey: string }[]
}
