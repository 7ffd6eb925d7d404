// Which persons a caller means, as members of a static cohort.

/** Ids of persons, as they were given; a repeated one counts once. */
export interface MemberIds {
  /**
   * `person`: ids in digits, or uuids. `any`: distinct ids and, for one in the form of a uuid that leads nowhere, the
   * person of this uuid.
   */
  readonly kind: 'distinct_id' | 'person' | 'any'
  readonly ids: readonly string[]
}

export interface MemberChange {
  /** Persons that became members, or are none any more. */
  readonly changedCount: number
  /** Persons that were members already, or were none. */
  readonly unchangedCount: number
  /** Ids that lead to no person of the project, in the order given. */
  readonly unknownIds: readonly string[]
}
