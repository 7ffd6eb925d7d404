// Deletes a group type with its groups, unless a flag needs it. It is gone at once for all who read or write groups; its rows
// are deleted in batches, so that no transaction grows with what clients have sent. Called by the private API.

import { ok, type Result } from '#core/result.ts'
import type { ManagementStore } from '#ports/management-store.ts'

export interface DeleteGroupTypeDeps {
  readonly management: Pick<ManagementStore, 'startDeletingGroupType' | 'deleteGroupsOfType'>
  readonly definitionsReady: (revision: number) => Promise<void>
}

/** Groups of one transaction: the worker waits for it. */
const groupsPerTransaction = 500

/**
 * A call that was interrupted leaves the type as being deleted; the next one completes it.
 * @returns the keys of flags that aggregate by the type or read its groups, inactive ones too, when there are any.
 */
export async function deleteGroupType(
  { management, definitionsReady }: DeleteGroupTypeDeps,
  projectId: number,
  typeIndex: number,
): Promise<Result<null, 'not_found' | { readonly usedBy: readonly string[] }>> {
  const started = await management.startDeletingGroupType(projectId, typeIndex)
  if (!started.ok) return started
  await definitionsReady(started.value.revision)
  while (await management.deleteGroupsOfType(projectId, typeIndex, groupsPerTransaction));
  return ok(null)
}
