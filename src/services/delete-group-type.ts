// Deletes a group type with its groups, unless a flag needs it: at once for everybody who reads or writes groups, then row by
// row, so that no transaction grows with what clients have sent. Called by the private API.

import { mapReferences } from '#core/flags/map-references.ts'
import type { JsonObject } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ManagementStore } from '#ports/management-store.ts'

export interface DeleteGroupTypeDeps {
  readonly management: Pick<
    ManagementStore,
    'listGroupTypes' | 'listFlags' | 'startDeletingGroupType' | 'deleteGroupsOfType'
  >
  readonly definitionsReady: (revision: number) => Promise<void>
}

/** Groups of one transaction: the worker waits for it. */
const groupsPerTransaction = 500
const flagsPerPage = 100
/** So many flags in the way are enough to know of. */
const namedFlagsMax = 20

/**
 * A call that was interrupted leaves the type as being deleted; the next one completes it.
 * @returns the keys of flags that aggregate by the type or read its groups, inactive ones too, when there are any.
 */
export async function deleteGroupType(
  { management, definitionsReady }: DeleteGroupTypeDeps,
  projectId: number,
  typeIndex: number,
): Promise<Result<null, 'not_found' | { readonly usedBy: readonly string[] }>> {
  const type = (await management.listGroupTypes(projectId)).find(({ index }) => index === typeIndex)
  if (type === undefined) return err('not_found')
  const usedBy = type.isBeingDeleted === true ? [] : await flagsWith(management, projectId, typeIndex)
  if (usedBy.length > 0) return err({ usedBy })
  const started = await management.startDeletingGroupType(projectId, typeIndex)
  if (!started.ok) return started
  await definitionsReady(started.value.revision)
  while (await management.deleteGroupsOfType(projectId, typeIndex, groupsPerTransaction));
  return ok(null)
}

async function flagsWith(
  management: DeleteGroupTypeDeps['management'],
  projectId: number,
  typeIndex: number,
): Promise<string[]> {
  const keys: string[] = []
  for (let offset = 0; keys.length < namedFlagsMax; ) {
    const { count, results } = await management.listFlags(projectId, { limit: flagsPerPage, offset })
    for (const { key, filters } of results) if (hasGroupType(filters, typeIndex)) keys.push(key)
    offset += results.length
    if (results.length === 0 || offset >= count) break
  }
  return keys
}

function hasGroupType(filters: JsonObject, typeIndex: number): boolean {
  let isFound = false
  const same = (id: number) => id
  mapReferences(filters, {
    cohort: same,
    flag: same,
    groupType: index => {
      isFound ||= index === typeIndex
      return index
    },
  })
  return isFound
}
