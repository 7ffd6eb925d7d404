// A write of a flag that belongs to the write of something else: an early access feature, a survey, an experiment. The
// store keeps both or neither, in one transaction.

import type { Flag } from '#core/flags/definitions/flag.ts'
import type { LinkedWrite } from './cohort-store.ts'

export type NewFlag = Omit<Flag, 'id' | 'version' | 'deleted' | 'updatedAtMs' | 'hasExperiment'>
export type FlagPatch = Partial<Omit<Flag, 'id' | 'projectId' | 'version' | 'createdAtMs' | 'createdBy'>> & {
  readonly updatedAtMs: number
}

export type FlagWrite =
  | (LinkedWrite & { readonly kind: 'create'; readonly flag: NewFlag; readonly hasExperiment?: boolean })
  | (LinkedWrite & {
      readonly kind: 'change'
      readonly flagId: number
      /** The version that the patch was made from: another one refuses the whole write. */
      readonly expectedVersion: number
      readonly patch: FlagPatch
      readonly changedBy: string | null
    })

/**
 * `key_taken` by another flag; `flag_changed` since it was read, or deleted; `definitions_changed` since what the flag
 * refers to was checked. Nothing was written.
 */
export type FlagWriteRefusal = 'key_taken' | 'flag_changed' | 'definitions_changed'
