// A person as the private API shows it.

import type { DistinctIdMapping, Person } from '#core/persons/person.ts'

export interface PersonView extends Omit<Person, 'marks' | 'properties'> {
  readonly id: number
  /** JSON text of the properties, as it is stored: a front hands it on without reading it. */
  readonly propertiesJson: string
  /** At most `shownDistinctIdCountMax` of `core/persons/person.ts`, those that do not look made up by an SDK first. */
  readonly distinctIds: readonly DistinctIdMapping[]
  /** How many there are. Counted up to one more than a person may have: one from before that limit may have more. */
  readonly distinctIdCount: number
  /** At most `shownFlagOverrideCountMax`, by flag key. */
  readonly flagOverrides: readonly { readonly flagKey: string; readonly hashKey: string }[]
}
