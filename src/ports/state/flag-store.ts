// Feature flags and their versions, as the private API reads and writes them. Evaluations read flags from
// `definition-store.ts`.

import type { Author, Change } from '#core/author.ts'
import type { DefinitionLinks } from '#core/flags/definitions/definition-links.ts'
import type { Flag, FlagFields } from '#core/flags/definitions/flag.ts'
import type { FlagTraits } from '#core/flags/definitions/flag-traits.ts'
import type { EarlyAccessFeature } from '#core/resources/early-access-feature.ts'
import type { Result } from '#core/result.ts'
import type { Page, Written } from './written.ts'

export interface FlagVersion {
  readonly flagId: number
  readonly version: number
  /** The whole flag in this version. */
  readonly flag: Flag
  readonly changedBy: Author | null
  readonly createdAtMs: number
}

export interface FlagStore {
  /** The authors of a project's flags, surveys or experiments, in any order. */
  listAuthors(projectId: number, ofWhat: 'feature_flag' | 'survey' | 'experiment'): Promise<readonly Author[]>
  createFlag(
    input: NewFlag,
    change: Change,
    options?: LinkedWrite,
  ): Promise<Result<Written<Flag>, 'key_taken' | 'flags_too_large' | 'definitions_changed'>>
  /**
   * Applies the patch, adds 1 to the version and stores a snapshot of the new version. If the patch changes nothing,
   * nothing is written and the current flag is returned. If `expectedVersion` is not the current version, nothing is
   * written either, and the current flag is returned as an error. A deleted flag is `not_found` unless the patch has
   * `deleted: false`, which restores the flag as long as its key is free. `flags_too_large` is a flag that grew beyond
   * `projectFlagsBytesMax`, also in `createFlag`.
   */
  updateFlag(
    projectId: number,
    flagId: number,
    patch: FlagPatch,
    change: Change,
    options?: LinkedWrite & { expectedVersion?: number },
  ): Promise<
    Result<
      Written<Flag>,
      'not_found' | 'key_taken' | 'flags_too_large' | 'definitions_changed' | { readonly staleVersion: Flag }
    >
  >
  /** Finds `:id` of the API: an id in digits (deleted flags included), otherwise the key of a flag that is not deleted. */
  findFlag(projectId: number, idOrKey: string): Promise<Flag | null>
  /** Finds a flag that is not deleted, by key only, even if the key looks like an id. */
  findFlagByKey(projectId: number, key: string): Promise<Flag | null>
  /** In any order, deleted flags included. Unknown ids are left out. */
  listFlagsById(projectId: number, flagIds: readonly number[]): Promise<readonly Flag[]>
  /** Newest first, without deleted flags and flags that were created for a survey. */
  listFlags(projectId: number, query: FlagQuery): Promise<Page<Flag>>
  /**
   * The ids of flags with these traits, newest first. Reads every candidate flag, so it takes longer than `listFlags`.
   */
  searchFlags(projectId: number, search: FlagSearch): Promise<readonly number[]>
  /**
   * The first of these flags that fit into one read of the store; at least one flag. The ids must be sorted newest first.
   */
  listFittingFlags(projectId: number, flagIds: readonly number[]): Promise<readonly Flag[]>
  /** Newest first. */
  listFlagVersions(
    projectId: number,
    flagId: number,
    page: { limit: number; offset: number },
  ): Promise<Page<FlagVersion>>
  findFlagVersion(projectId: number, flagId: number, version: number): Promise<FlagVersion | null>
  /**
   * Versions of all flags of a project, deleted flags included; the latest write first. The size of a page includes the
   * version before each of its versions, because whoever reads the page compares the two.
   */
  listProjectFlagVersions(projectId: number, page: { limit: number; offset: number }): Promise<Page<FlagVersion>>
  /** The owners of these flags; flags without an owner are left out. Takes a few thousand ids per call. */
  listFlagOwners(projectId: number, flagIds: readonly number[]): Promise<readonly FlagOwners[]>
  /**
   * The early access features of these flags, and the experiments and surveys that have not ended at `nowMs` and are
   * neither deleted nor archived. Takes a few thousand ids per call.
   */
  listFlagUses(projectId: number, flagIds: readonly number[], nowMs: number): Promise<readonly FlagUse[]>
  /**
   * When these flags were last called, as far as processed live events show; flags without a known call are left out.
   * Takes a few thousand ids per call.
   */
  listLastCalls(projectId: number, flagIds: readonly number[]): Promise<readonly LastFlagCall[]>
}

export interface FlagChoice {
  /** Part of a key or a name, ignoring case. */
  readonly search?: string
  /** The key, ignoring case. */
  readonly key?: string
  readonly active?: boolean
  /** Archived flags are left out by default. */
  readonly archived?: boolean | 'all'
}

export interface FlagQuery extends FlagChoice {
  readonly limit: number
  readonly offset: number
}

export interface FlagSearch extends FlagChoice {
  readonly traits: FlagTraits
  /** Only flags whose status is `STALE` at this time (`core/flags/definitions/flag-status.ts`). */
  readonly staleAtMs?: number
}

export interface FlagUse {
  readonly flagId: number
  readonly kind: 'experiment' | 'survey' | 'early_access_feature'
  readonly id: number | string
  readonly name: string
}

export interface LastFlagCall {
  readonly flagId: number
  readonly calledAtMs: number
}

export interface FlagOwners {
  readonly flagId: number
  /** Ids of the flag's experiments that are not deleted, ascending. */
  readonly experimentIds: readonly number[]
  readonly features: readonly EarlyAccessFeature[]
}

// A flag write that is part of another write: of an early access feature, a survey or an experiment. The store writes
// both or neither, in one transaction.

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
 * it was read. `definitions_changed`: see `LinkedWrite`. `flags_too_large`: see `projectFlagsBytesMax`.
 */
export type FlagWriteRefusal = 'key_taken' | 'flag_changed' | 'definitions_changed' | 'flags_too_large'

/**
 * A write is first checked against the references between flags and cohorts (a missing cohort, a cycle), so the store
 * must notice if they changed between the check and the write. `linksRevision` is the revision from `findLinks`. If the project's definitions have changed since, the write is
 * refused as `definitions_changed`, and the caller checks again. So if two writes would close a cycle together, one of
 * them detects the other. Without `linksRevision` nothing is compared.
 */
export interface LinkedWrite {
  readonly linksRevision?: number
}

export interface DefinitionLinkReader {
  /**
   * The flags, cohorts and group types of a project that are not deleted, and what each of them refers to. At least as new
   * as the answer's `revision`.
   */
  findLinks(projectId: number): Promise<DefinitionLinks>
}
