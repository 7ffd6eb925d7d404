// A cohort as stored: a set of persons, either listed (static) or described by a tree of filters (dynamic). `filters`
// stays JSON, because stored definitions may be older than our validation or have skipped it.

import type { Author } from '../../author.ts'
import type { JsonObject } from '../../json.ts'
import { diffJson } from '../../json-diff.ts'

export interface Cohort {
  /** Instance-wide, ascending from 1, never reused; filters of flags and of other cohorts refer to it. */
  readonly id: number
  readonly projectId: number
  readonly name: string
  readonly description: string
  /** True when the members are stored rows, whatever `filters` say. */
  readonly isStatic: boolean
  /** `{properties: {type, values}}`. Source: docs/wire/evaluation.md 5.11. */
  readonly filters: JsonObject
  readonly deleted: boolean
  readonly version: number
  /** As of `countedAtMs`; null when not counted yet. */
  readonly memberCount: number | null
  readonly countedAtMs: number | null
  readonly createdAtMs: number
  readonly updatedAtMs: number
  /** Null when it was written without a key. */
  readonly createdBy: Author | null
}

/** Whether a change leaves everything that writers decide unchanged; such a change makes no version. */
export function isSameCohort(before: Cohort, after: Cohort): boolean {
  return (
    before.name === after.name &&
    before.description === after.description &&
    before.deleted === after.deleted &&
    diffJson(before.filters, after.filters).length === 0
  )
}
