// A flag as stored; `compile-flag.ts` compiles it for evaluation. `filters` stays JSON, because stored definitions may
// be older than our validation or have skipped it.

import { omitUndefined } from '#core/omit-undefined.ts'
import type { Author } from '../../author.ts'
import type { JsonObject } from '../../json.ts'
import { diffJson } from '../../json-diff.ts'

/**
 * The fields that a flag's writer decides. A create, an update, a copy and a restore all take exactly these fields, so
 * a new one is added here; ARCHITECTURE §10 lists the steps that the compiler cannot check.
 */
export interface WritableFlag {
  /** Part of the hash; case-sensitive. */
  readonly key: string
  readonly name: string
  readonly filters: JsonObject
  readonly active: boolean
  /** Kept but unused: an archived flag is inactive and is left out of lists. */
  readonly archived: boolean
  readonly deleted: boolean
  readonly ensureExperienceContinuity: boolean
  /** With `device_id` the device id is hashed; with anything else, including null, the distinct id. */
  readonly bucketingIdentifier: string | null
  readonly evaluationRuntime: string
  readonly evaluationContexts: readonly string[]
  readonly hasEncryptedPayloads: boolean
  readonly isRemoteConfiguration: boolean
  readonly tags: readonly string[]
}

/** A stored flag. The store maintains the fields that its writer does not set. */
export interface Flag extends WritableFlag {
  /** Instance-wide, ascending from 1, never reused; other flags refer to it by this id. */
  readonly id: number
  readonly projectId: number
  readonly version: number
  readonly hasExperiment: boolean
  readonly createdAtMs: number
  readonly updatedAtMs: number
  /** When its filters or its active state last changed, and so since when it has decided the same way. */
  readonly conditionsSinceMs: number
  /** Null when it was written without a key. */
  readonly createdBy: Author | null
}

/** The fields that one write sets. */
export type FlagFields = Partial<WritableFlag>

/** The values of fields that a flag's writer omits or sends as null. */
export const flagDefaults: Omit<WritableFlag, 'key'> = {
  name: '',
  filters: {},
  active: true,
  archived: false,
  deleted: false,
  ensureExperienceContinuity: false,
  bucketingIdentifier: null,
  evaluationRuntime: 'all',
  evaluationContexts: [],
  hasEncryptedPayloads: false,
  isRemoteConfiguration: false,
  tags: [],
}

const writableNames = ['key', ...Object.keys(flagDefaults)] as readonly (keyof WritableFlag)[]

/** All fields that a writer decided, for a write that gives them to another flag. */
export function pickWritableFields(flag: Flag): WritableFlag {
  return Object.fromEntries(writableNames.map(name => [name, flag[name]])) as unknown as WritableFlag
}

/** A flag after a change: whoever changes it, an archived flag is inactive. */
export function applyFlagChange(current: Flag, change: Partial<Flag>): Flag {
  const flag = withoutArchivedActive({ ...current, ...omitUndefined(change) })
  const decidesAlike =
    flag.active === current.active &&
    flag.deleted === current.deleted &&
    JSON.stringify(flag.filters) === JSON.stringify(current.filters)
  return decidesAlike ? flag : { ...flag, conditionsSinceMs: flag.updatedAtMs }
}

/** Whether a change leaves a flag unchanged; such a change makes no version. */
export function isSameDefinition(before: Flag, after: Flag): boolean {
  return (
    before.hasExperiment === after.hasExperiment &&
    writableNames.every(name =>
      name === 'filters'
        ? diffJson(before.filters, after.filters).length === 0
        : JSON.stringify(before[name]) === JSON.stringify(after[name]),
    )
  )
}

export function withoutArchivedActive<T extends Pick<Flag, 'active' | 'archived'>>(flag: T): T {
  return flag.archived && flag.active ? { ...flag, active: false } : flag
}
