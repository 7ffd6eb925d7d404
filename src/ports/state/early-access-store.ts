// Early access features as the private API reads and writes them. Every write shares its transaction with the flag's.

import type { Change } from '#core/author.ts'
import type { EarlyAccessFeature } from '#core/early-access/early-access-feature.ts'
import type { Result } from '#core/result.ts'
import type { FlagWrite, FlagWriteRefusal } from './flag-write.ts'
import type { Page, Written } from './written.ts'

export type EarlyAccessPatch = Partial<
  Pick<EarlyAccessFeature, 'name' | 'description' | 'stage' | 'documentationUrl' | 'payload'>
>

export type EarlyAccessFeatureWithoutFlag = Omit<
  EarlyAccessFeature,
  'flagId' | 'flagIsOwn' | 'createdAtMs' | 'createdBy'
>

export interface EarlyAccessStore {
  /**
   * The feature's flag is the one that `flag` creates or changes; a created flag belongs to the feature alone. Refused
   * as `flag_in_use` if another feature has that flag.
   */
  createEarlyAccessFeature(
    input: EarlyAccessFeatureWithoutFlag,
    flag: FlagWrite,
    change: Change,
  ): Promise<Result<Written<EarlyAccessFeature>, FlagWriteRefusal | 'flag_in_use'>>
  /**
   * @param flag null leaves the flag unchanged.
   * @param basedOn what the caller read: refused as `flag_changed` if it was written since. Not compared when absent.
   */
  updateEarlyAccessFeature(
    projectId: number,
    id: string,
    patch: EarlyAccessPatch,
    flag: FlagWrite | null,
    change: Change,
    basedOn?: EarlyAccessFeature,
  ): Promise<Result<Written<EarlyAccessFeature>, FlagWriteRefusal | 'not_found'>>
  deleteEarlyAccessFeature(
    projectId: number,
    id: string,
    flag: FlagWrite | null,
    change: Change,
    basedOn?: EarlyAccessFeature,
  ): Promise<Result<Written<null>, FlagWriteRefusal | 'not_found'>>
  findEarlyAccessFeature(projectId: number, id: string): Promise<EarlyAccessFeature | null>
  /** Newest first. */
  listEarlyAccessFeatures(projectId: number, page: { limit: number; offset: number }): Promise<Page<EarlyAccessFeature>>
}
