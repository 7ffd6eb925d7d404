// Groups and group types as the private API shows and deletes them. Groups are written by chunks (`chunk-store.ts`).

import type { Change } from '#core/author.ts'
import type { Group, GroupType } from '#core/groups/group.ts'
import type { Result } from '#core/result.ts'
import type { Written } from './written.ts'

/** A group as the private API shows it; `propertiesJson` is the stored text. */
export type GroupView = Omit<Group, 'marks' | 'properties'> & { readonly propertiesJson: string }

/** How many flags a refused `startDeletingGroupType` names at most. */
export const namedFlagsMax = 20

export interface GroupStore {
  /** Includes types that are being deleted. */
  listGroupTypes(projectId: number): Promise<readonly GroupType[]>
  /**
   * From now on, nothing is stored under the type, and definitions do not include it. Its groups still exist and its index
   * stays taken until `deleteGroupsOfType` has deleted the last group. A repeat changes nothing. If flags use the type,
   * even inactive flags, nothing is done, and the answer has their keys, at most `namedFlagsMax`. Nothing is done either
   * while events of a pending import job name the type.
   */
  startDeletingGroupType(
    projectId: number,
    typeIndex: number,
    change: Change,
  ): Promise<Result<Written<null>, 'not_found' | 'used_by_import' | { readonly usedBy: readonly string[] }>>
  /**
   * Deletes at most `countMax` groups of a type whose deletion was started, in one transaction. With the last group, the
   * type is deleted and its index becomes free.
   * @returns whether there is more to delete.
   */
  deleteGroupsOfType(projectId: number, typeIndex: number, countMax: number): Promise<boolean>
  /**
   * Newest first; `search` and `keyPart` match parts of texts, ignoring case. Large groups make a page shorter than its
   * limit, as in `PersonStore.listPersons`.
   */
  listGroups(
    projectId: number,
    query: { typeIndex: number; search?: string; keyPart?: string; limit: number; offset: number },
  ): Promise<{ results: readonly GroupView[]; hasMore: boolean }>
  /** Groups with a key above `afterKey`, in the order of its bytes. Large groups make a page short: see `hasMore`. */
  listGroupsAfter(
    projectId: number,
    page: { typeIndex: number; afterKey?: string; limit: number },
  ): Promise<{ results: readonly GroupView[]; hasMore: boolean }>
  countGroups(projectId: number, typeIndex: number): Promise<number>
  findStoredGroup(projectId: number, typeIndex: number, key: string): Promise<GroupView | null>
}
