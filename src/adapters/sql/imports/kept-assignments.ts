// What a merge by an import job does to flag assignments and static cohorts, so that undoing the job restores them to each
// person. Source: docs/wire/import.md §3.3.

import type { Assignments, AssignmentsRecord } from '#core/imports/import-changes.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'

/**
 * The records, as of before the merges.
 * @param merges in the order in which they are made.
 * @param assignmentsOf what each of the persons has, by uuid.
 */
export function makeAssignmentRecords(
  importJobId: number,
  merges: ChunkChanges['deletedPersons'],
  assignmentsOf: (uuid: string) => Assignments,
): AssignmentsRecord[] {
  const held = new Map<string, { readonly flags: Set<string>; readonly cohorts: Set<number> }>()
  const heldBy = (uuid: string) => {
    const { hashKeys, cohortIds } = assignmentsOf(uuid)
    const known = held.get(uuid) ?? { flags: new Set(hashKeys.map(([flag]) => flag)), cohorts: new Set(cohortIds) }
    held.set(uuid, known)
    return known
  }
  const records: AssignmentsRecord[] = []
  for (const { uuid, survivorUuid } of merges) {
    const own = assignmentsOf(uuid)
    if (own.hashKeys.length + own.cohortIds.length === 0) continue
    const { flags, cohorts } = heldBy(survivorUuid)
    const hashKeys = own.hashKeys.filter(([flag]) => !flags.has(flag))
    const cohortIds = own.cohortIds.filter(id => !cohorts.has(id))
    for (const [flag] of hashKeys) flags.add(flag)
    for (const id of cohortIds) cohorts.add(id)
    records.push({ importJobId, uuid, own, survivorUuid, taken: { hashKeys, cohortIds } })
  }
  return records
}
