// Early access features, surveys and experiments as the private API reads and writes them. Every write shares its
// transaction with the writes of the item's flags, and with its entry in the activity log.

import type { Author, Change } from '#core/author.ts'
import type { ExperimentFilter } from '#core/experiments/filter-experiments.ts'
import type { RequiredKey } from '#core/resource.ts'
import type { Item, ResourceName, resources } from '#core/resources/resources.ts'
import type { SurveyStatus } from '#core/resources/survey.ts'
import type { Result } from '#core/result.ts'
import type { FlagWrite, FlagWriteRefusal, LinkedWrite } from './flag-store.ts'
import type { Page, Written } from './written.ts'

/** Absent fields get their initial values. If the `id` is a number, the store assigns it. */
export type NewItem<N extends ResourceName> = Pick<Item<N>, 'projectId' | RequiredKey<(typeof resources)[N]>> &
  Partial<Item<N>>

/**
 * An item's flag writes, by the item's field that names the flag. A field without a write keeps its flag, and null writes
 * nothing. `flagIsOwn` becomes true for a flag that is created.
 */
export type FlagWrites<N extends ResourceName> = {
  readonly [K in keyof Item<N> & `${string}lagId`]?: FlagWrite | null
}

export interface PageQuery {
  readonly limit: number
  readonly offset: number
}

export type ItemQuery<N extends ResourceName> = PageQuery & (N extends keyof ItemFilters ? ItemFilters[N] : unknown)

/** All filters of a list must match. */
interface ItemFilters {
  survey: {
    /** Part of a name or a description, ignoring case. */
    readonly search?: string
    readonly archived?: boolean
    readonly status?: SurveyStatus
    readonly type?: Item<'survey'>['type']
    readonly ids?: readonly string[]
    /** Only surveys that were created by one of these authors. */
    readonly createdBy?: readonly Author[]
  }
  experiment: ExperimentFilter & {
    /** The current time, needed to sort experiments by duration. */
    readonly nowMs: number
  }
}

export interface ResourceStore {
  /** Refused as `flag_in_use` when another early access feature has the flag. */
  createResource<N extends ResourceName>(
    name: N,
    input: NewItem<N>,
    flags: FlagWrites<N>,
    change: Change,
  ): Promise<Result<Written<Item<N>>, FlagWriteRefusal | (N extends 'early_access_feature' ? 'flag_in_use' : never)>>
  /**
   * @param patch for a field of kind `members`, only the members that change. @param basedOn the item as the caller read
   * it: the write is refused as `flag_changed` if the item was written since. Not compared when absent.
   */
  updateResource<N extends ResourceName>(
    name: N,
    projectId: number,
    id: Item<N>['id'],
    patch: Partial<Item<N>>,
    flags: FlagWrites<N>,
    change: Change,
    basedOn?: Item<N>,
  ): Promise<Result<Written<Item<N>>, FlagWriteRefusal | 'not_found'>>
  /** If no other experiment uses this experiment's flag, the flag loses its mark `has_experiment`. */
  deleteResource<N extends ResourceName>(
    name: N,
    projectId: number,
    id: Item<N>['id'],
    flags: FlagWrites<N>,
    change: Change,
    options?: LinkedWrite & { readonly basedOn?: Item<N> },
  ): Promise<Result<Written<null>, FlagWriteRefusal | 'not_found'>>
  findResource<N extends ResourceName>(name: N, projectId: number, id: Item<N>['id']): Promise<Item<N> | null>
  /** Newest first, unless the query says otherwise. Without deleted items. */
  listResources<N extends ResourceName>(name: N, projectId: number, query: ItemQuery<N>): Promise<Page<Item<N>>>
}
