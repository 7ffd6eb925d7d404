// A person: the human behind one or more distinct ids.

import type { JsonValue, PropertyBag } from '../json.ts'

/**
 * Which write a property's value is from. Kept only where an import needs it: for keys that an import wrote and keys
 * that a live `$set_once` created. A key without a mark belongs to live `$set`. Source: docs/wire/import.md 3.4.
 */
export interface PropertyMark {
  /** `live_once`, `import_set`, `import_once`; `import_unset` is the tombstone of a removed key. */
  readonly kind: 'live_once' | 'import_set' | 'import_once' | 'import_unset'
  /** Event time of the write, epoch ms. */
  readonly timestampMs: number
  readonly uuid: string
  readonly importJobId: number
  /**
   * A write that the import's value covers, kept so that the events of an import give the same result in any order:
   * with `import_set` and `import_unset` the import's earliest `$set_once` of the key. `value` is kept only while it
   * could still become the key's value.
   */
  readonly once?: { readonly timestampMs: number; readonly uuid: string; readonly value?: JsonValue }
  /** With `import_once`: the import's latest `$unset` of the key, which is earlier than this value. */
  readonly unset?: { readonly timestampMs: number; readonly uuid: string }
}

export type PropertyMarks = { readonly [key: string]: PropertyMark }

export interface Person {
  readonly projectId: number
  readonly uuid: string
  readonly properties: PropertyBag
  readonly marks: PropertyMarks
  /** Event time of the event that created the person, epoch ms. */
  readonly createdAtMs: number
  readonly isIdentified: boolean
  /** 0 when created, +1 with each write; every write is conditional on the version it was computed from. */
  readonly version: number
  /** Latest event time among the writes; an event that changes nothing does not move it. Epoch ms. */
  readonly lastSeenAtMs: number
}

/** A distinct id and its person. A version above 0 makes the mapping an override for events already stored. */
export interface DistinctIdMapping {
  readonly projectId: number
  readonly distinctId: string
  readonly personUuid: string
  readonly version: number
}

/** How many distinct ids a person is shown with; a separate list has all of them. */
export const shownDistinctIdCountMax = 100
/** How many rows of experience continuity a person is shown with. */
export const shownFlagOverrideCountMax = 1_000
