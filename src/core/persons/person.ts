// A person: the human behind one or more distinct ids.

import type { JsonValue, PropertyBag } from '../json.ts'

/**
 * The write that a property's value comes from. Kept only where imports need it: for keys that an import wrote and keys that
 * a live `$set_once` created. A key without a mark belongs to a live `$set`. Source: docs/wire/import.md 3.4.
 */
export interface PropertyMark {
  /** `live_once`, `import_set`, `import_once`; `import_unset` is the tombstone of a removed key. */
  readonly kind: 'live_once' | 'import_set' | 'import_once' | 'import_unset'
  /** Event time of the write, epoch ms. */
  readonly timestampMs: number
  readonly uuid: string
  readonly importJobId: number
  /**
   * A write hidden by the import's value, kept so that the events of an import give the same result in any order: with
   * `import_set` and `import_unset`, the import's earliest `$set_once` of the key. `value` is kept only while it could still
   * become the key's value.
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
  /** Latest event time among the events that wrote to the person, epoch ms; events that change nothing do not count. */
  readonly lastSeenAtMs: number
}

/** A distinct id and its person. A version above 0 makes the mapping an override for already stored events. */
export interface DistinctIdMapping {
  readonly projectId: number
  readonly distinctId: string
  readonly personUuid: string
  readonly version: number
}

/** How many of a person's distinct ids are shown with the person; a separate list has all of them. */
export const shownDistinctIdCountMax = 100
/** How many of a person's rows for experience continuity are shown with the person. */
export const shownFlagOverrideCountMax = 1_000
