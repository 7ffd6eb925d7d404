// A flag write that is part of another write: of an early access feature, a survey or an experiment. The store writes
// both or neither, in one transaction.

import type { Flag, FlagFields } from '#core/flags/definitions/flag.ts'
import type { LinkedWrite } from './definition-links.ts'

export type NewFlag = Omit<
  Flag,
  'id' | 'version' | 'deleted' | 'createdAtMs' | 'updatedAtMs' | 'createdBy' | 'conditionsSinceMs' | 'hasExperiment'
>
export type FlagPatch = FlagFields & { readonly hasExperiment?: boolean }

export type FlagWrite =
  | (LinkedWrite & { readonly kind: 'create'; readonly flag: NewFlag; readonly hasExperiment?: boolean })
  | (LinkedWrite & {
      readonly kind: 'change'
      readonly flagId: number
      /** The version that the caller read. If it is outdated, the whole write is refused as `flag_changed`. */
      readonly expectedVersion: number
      readonly patch: FlagPatch
    })

/**
 * Why nothing was written. `key_taken`: another flag has the key. `flag_changed`: the flag was changed or deleted since
 * it was read. `definitions_changed`: see `LinkedWrite`.
 */
export type FlagWriteRefusal = 'key_taken' | 'flag_changed' | 'definitions_changed'
