// A flag as it is stored: the definition that `compile-flag.ts` turns into something to evaluate.
// `filters` stays JSON, because stored definitions may be older than our validation or have skipped it.

import type { JsonObject } from '../../json.ts'

export interface Flag {
  /** Instance-wide, ascending from 1, never reused; dependencies name it. */
  readonly id: number
  readonly projectId: number
  /** Part of the hash; case-sensitive. */
  readonly key: string
  readonly name: string
  readonly filters: JsonObject
  readonly active: boolean
  readonly deleted: boolean
  readonly version: number
  readonly ensureExperienceContinuity: boolean
  /** `device_id` hashes the device id; anything else, null included, the distinct id. */
  readonly bucketingIdentifier: string | null
  readonly evaluationRuntime: string
  readonly evaluationContexts: readonly string[]
  readonly hasEncryptedPayloads: boolean
  readonly isRemoteConfiguration: boolean
  readonly tags: readonly string[]
  readonly hasExperiment: boolean
  readonly createdAtMs: number
  readonly updatedAtMs: number
  /** Label of the key that wrote it, or null. */
  readonly createdBy: string | null
}

/** What a write may set; the rest is kept by the store. */
export type FlagFields = Partial<
  Pick<
    Flag,
    | 'key'
    | 'name'
    | 'filters'
    | 'active'
    | 'deleted'
    | 'ensureExperienceContinuity'
    | 'bucketingIdentifier'
    | 'evaluationRuntime'
    | 'evaluationContexts'
    | 'hasEncryptedPayloads'
    | 'isRemoteConfiguration'
    | 'tags'
  >
>
