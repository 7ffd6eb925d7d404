// The human behind one or more distinct ids.

import type { JsonValue, PropertyBag } from '../json.ts'

/**
 * Who wrote a property's value, kept only where it matters to an import: keys an import wrote, and keys a live
 * `$set_once` created. A key without a mark belongs to live `$set`. Source: docs/wire/import.md 3.4.
 */
export interface PropertyMark {
  /** `live_once`, `import_set`, `import_once`; `import_unset` is the tombstone of a removed key. */
  readonly kind: 'live_once' | 'import_set' | 'import_once' | 'import_unset'
  /** Event time of the write, epoch ms. */
  readonly timestampMs: number
  readonly uuid: string
  readonly importJobId: number
  /**
   * What stands beneath an import's value, so that any order of the same import ends alike: with `import_set` and
   * `import_unset` the import's earliest `$set_once` of the key, its value kept only while it could still come up.
   */
  readonly once?: { readonly timestampMs: number; readonly uuid: string; readonly value?: JsonValue }
  /** With `import_once`: the import's latest `$unset` of the key, which this value is later than. */
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

/** A distinct id and the person it leads to. A version above 0 makes it an override for events already stored. */
export interface DistinctIdMapping {
  readonly projectId: number
  readonly distinctId: string
  readonly personUuid: string
  readonly version: number
}

/** Distinct ids that a person is shown with; a list of their own has all. */
export const shownDistinctIdCountMax = 100
/** Rows of experience continuity that a person is shown with. */
export const shownFlagOverrideCountMax = 1_000
