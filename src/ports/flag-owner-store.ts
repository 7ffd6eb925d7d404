// What flags belong to, as answers about flags name it.

import type { EarlyAccessFeature } from '#core/early-access/early-access-feature.ts'

export interface FlagOwners {
  readonly flagId: number
  /** Ids of the experiments that are not deleted, ascending. */
  readonly experimentIds: readonly number[]
  readonly features: readonly EarlyAccessFeature[]
}

export interface FlagOwnerStore {
  /** Flags that belong to nothing are left out; at most some thousand are asked for at once. */
  listFlagOwners(projectId: number, flagIds: readonly number[]): Promise<readonly FlagOwners[]>
}
