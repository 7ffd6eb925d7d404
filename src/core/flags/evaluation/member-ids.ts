// The persons that a caller names as members of a static cohort.

/** Ids of persons as given; a repeated id counts once. */
export interface MemberIds {
  /**
   * `person`: ids in digits, or uuids. `any`: distinct ids; a distinct id that belongs to no person but has the form of a
   * uuid is taken as a person's uuid.
   */
  readonly kind: 'distinct_id' | 'person' | 'any'
  readonly ids: readonly string[]
}

export interface MemberChange {
  /** Persons that became members, or stopped being members. */
  readonly changedCount: number
  /** Persons that already were members (when adding), or were not (when removing). */
  readonly unchangedCount: number
  /** Ids without a person in the project, in the given order. */
  readonly unknownIds: readonly string[]
}
