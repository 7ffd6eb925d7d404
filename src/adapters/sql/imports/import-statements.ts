// The statements of a commit that concern import jobs, as SQL text for both engines; their comments list the parameters
// (`?`). Each runs for a single row: few events of an import link persons, and publishing touches each person once.

import type { Assignments, AssignmentsRecord } from '#core/imports/import-changes.ts'
import type { ChunkChanges } from '#ports/state/chunk-store.ts'

export const importStatements = {
  /** id, state, step or '' */
  hasJob: `SELECT 1 FROM import_job WHERE id = ? AND state = ? AND coalesce(step, '') = ?`,

  /** import_job_id, reason, count; returns the count so far. */
  countNotes: `
  INSERT INTO import_note (import_job_id, reason, note_count) VALUES (?, ?, ?)
  ON CONFLICT (import_job_id, reason) DO UPDATE SET note_count = import_note.note_count + excluded.note_count
  RETURNING note_count`,

  /** count, id */
  countStoredRows: `UPDATE import_job SET stored_rows = stored_rows + ? WHERE id = ?`,

  /** import_job_id, reason, details */
  insertNoteSample: `
  INSERT INTO import_note_sample (import_job_id, reason, details) VALUES (?, ?, ?)`,

  /**
   * group_type_index, group_type_index, import_job_id. Marks the type as added by another job that names it, a published
   * job first, since that may be the next to be discarded.
   */
  passOnGroupType: `
  UPDATE import_group_type SET is_added = 1 WHERE group_type_index = ? AND import_job_id = (
    SELECT other.id FROM import_job AS job
      JOIN import_job AS other ON other.project_id = job.project_id AND other.id <> job.id
      JOIN import_group_type AS named ON named.import_job_id = other.id AND named.group_type_index = ?
    WHERE job.id = ? ORDER BY other.published_at IS NULL, other.published_at, other.id LIMIT 1)`,

  /** import_job_id, group_type_index */
  leaveGroupType: `DELETE FROM import_group_type WHERE import_job_id = ? AND group_type_index = ?`,

  /** person_id, feature_flag_key, hash_key */
  takeHashKey: `
  DELETE FROM flag_hash_key_override WHERE person_id = ? AND feature_flag_key = ? AND hash_key = ?`,

  /** project_id, person_id, feature_flag_key, hash_key */
  returnHashKey: `
  INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key) VALUES (?, ?, ?, ?)
  ON CONFLICT (person_id, feature_flag_key) DO NOTHING`,

  /** person_id, cohort_id */
  takeMembership: `DELETE FROM cohort_person WHERE person_id = ? AND cohort_id = ?`,

  /** person_id, cohort id. A cohort that has been deleted since gets no members. */
  returnMembership: `
  INSERT INTO cohort_person (person_id, cohort_id) SELECT ?, id FROM cohort WHERE id = ?
  ON CONFLICT (person_id, cohort_id) DO NOTHING`,

  /** person_id */
  listHashKeys: `
  SELECT feature_flag_key, hash_key FROM flag_hash_key_override WHERE person_id = ? ORDER BY feature_flag_key`,

  /** person_id */
  listMemberships: `SELECT cohort_id FROM cohort_person WHERE person_id = ? ORDER BY cohort_id`,

  /** id */
  deleteLink: `DELETE FROM import_link WHERE id = ?`,

  /** project_id, uuid, version */
  hasPerson: `SELECT 1 FROM person WHERE project_id = ? AND uuid = ? AND version = ?`,

  /** project_id, distinct_id, version */
  deleteMapping: `
  DELETE FROM person_distinct_id WHERE project_id = ? AND distinct_id = ? AND version = ?`,

  /** project_id, group_type_index, group_key, version */
  deleteGroup: `
  DELETE FROM "group" WHERE project_id = ? AND group_type_index = ? AND group_key = ? AND version = ?`,

  /** project_id, distinct_id, next_version */
  raiseNextVersion: `
  INSERT INTO personless_distinct_id (project_id, distinct_id, next_version) VALUES (?, ?, ?)
  ON CONFLICT (project_id, distinct_id) DO UPDATE SET next_version = excluded.next_version
    WHERE excluded.next_version > personless_distinct_id.next_version`,
}

/**
 * Lists the flag assignments and static cohorts of the persons that an import job merges, as they are before the merges, so
 * that undoing the job restores them to each person. Source: docs/wire/import.md §3.3.
 * @param merges in the order in which they are made. @param assignmentsOf returns a person's assignments before the merges,
 * by uuid.
 */
export function createAssignmentRecords(
  importJobId: number,
  merges: ChunkChanges['deletedPersons'],
  assignmentsOf: (uuid: string) => Assignments,
): AssignmentsRecord[] {
  const held = new Map<string, { readonly flags: Set<string>; readonly cohorts: Set<number> }>()
  const getOrAddHeld = (uuid: string) => {
    const { hashKeys, cohortIds } = assignmentsOf(uuid)
    const known = held.get(uuid) ?? { flags: new Set(hashKeys.map(([flag]) => flag)), cohorts: new Set(cohortIds) }
    held.set(uuid, known)
    return known
  }
  const records: AssignmentsRecord[] = []
  for (const { uuid, survivorUuid } of merges) {
    const own = assignmentsOf(uuid)
    if (own.hashKeys.length + own.cohortIds.length === 0) continue
    const { flags, cohorts } = getOrAddHeld(survivorUuid)
    const hashKeys = own.hashKeys.filter(([flag]) => !flags.has(flag))
    const cohortIds = own.cohortIds.filter(id => !cohorts.has(id))
    for (const [flag] of hashKeys) flags.add(flag)
    for (const id of cohortIds) cohorts.add(id)
    records.push({ importJobId, uuid, own, survivorUuid, taken: { hashKeys, cohortIds } })
  }
  return records
}
