// Deletes a group type with its groups, unless a flag needs it. The type disappears at once for everything that reads
// or writes groups; its rows are deleted in batches, so that the size of a transaction does not depend on the amount of
// data.

import type { Change } from '#core/author.ts'
import { ok, type Result } from '#core/result.ts'
import type { GroupStore } from '#ports/state/group-store.ts'

export interface DeleteGroupTypeDeps {
  readonly management: Pick<GroupStore, 'startDeletingGroupType' | 'deleteGroupsOfType'>
  readonly definitionsReady: (revision: number) => Promise<void>
}

/** Groups per transaction: the worker waits for each transaction. */
const groupsPerTransaction = 500

/**
 * An interrupted call leaves the type marked as being deleted; the next call completes it.
 * @returns the keys of flags that aggregate by the type or read its groups, inactive ones too, when there are any.
 */
export async function deleteGroupType(
  { management, definitionsReady }: DeleteGroupTypeDeps,
  projectId: number,
  typeIndex: number,
  change: Change,
): Promise<Result<null, 'not_found' | 'used_by_import' | { readonly usedBy: readonly string[] }>> {
  const started = await management.startDeletingGroupType(projectId, typeIndex, change)
  if (!started.ok) return started
  await definitionsReady(started.value.revision)
  while (await management.deleteGroupsOfType(projectId, typeIndex, groupsPerTransaction));
  return ok(null)
}
