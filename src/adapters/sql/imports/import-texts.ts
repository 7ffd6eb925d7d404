// The statements of a commit that concern import jobs, as SQL text with `?` for parameters, for both engines. They run by
// the row: of the events of an import, few link persons, and publishing touches each person once.

/** id, state, step or '' */
export const hasJobText = `SELECT 1 FROM import_job WHERE id = ? AND state = ? AND coalesce(step, '') = ?`

/** import_job_id, distinct_id, other_id, dangerously, timestamp, uuid. A chunk that runs again adds nothing. */
export const insertLinkText = `
  INSERT INTO import_link (import_job_id, distinct_id, other_id, dangerously, timestamp, uuid)
  VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

/** import_job_id, reason, count; returns the count so far. */
export const countNotesText = `
  INSERT INTO import_note (import_job_id, reason, note_count) VALUES (?, ?, ?)
  ON CONFLICT (import_job_id, reason) DO UPDATE SET note_count = import_note.note_count + excluded.note_count
  RETURNING note_count`

/** count, id */
export const countStoredRowsText = `UPDATE import_job SET stored_rows = stored_rows + ? WHERE id = ?`

/** import_job_id, reason, details */
export const insertNoteSampleText = `
  INSERT INTO import_note_sample (import_job_id, reason, details) VALUES (?, ?, ?)`

/** import_job_id, group_type_index, name, is_added. The first record of a type stays. */
export const nameGroupTypeText = `
  INSERT INTO import_group_type (import_job_id, group_type_index, name, is_added)
  VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`

/** group_type_index, group_type_index, import_job_id. A published job comes first: it may be discarded next. */
export const passOnGroupTypeText = `
  UPDATE import_group_type SET is_added = 1 WHERE group_type_index = ? AND import_job_id = (
    SELECT other.id FROM import_job AS job
      JOIN import_job AS other ON other.project_id = job.project_id AND other.id <> job.id
      JOIN import_group_type AS named ON named.import_job_id = other.id AND named.group_type_index = ?
    WHERE job.id = ? ORDER BY other.published_at IS NULL, other.published_at, other.id LIMIT 1)`

/** import_job_id, group_type_index */
export const leaveGroupTypeText = `DELETE FROM import_group_type WHERE import_job_id = ? AND group_type_index = ?`

/** import_job_id, person_uuid, survivor_uuid, own, taken. Of a person that was merged away before, the first `own` stays. */
export const saveAssignmentsText = `
  INSERT INTO import_assignments (import_job_id, person_uuid, survivor_uuid, own, taken) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (import_job_id, person_uuid) DO UPDATE
    SET survivor_uuid = excluded.survivor_uuid, taken = excluded.taken`

/** person_id, feature_flag_key, hash_key */
export const takeHashKeyText = `
  DELETE FROM flag_hash_key_override WHERE person_id = ? AND feature_flag_key = ? AND hash_key = ?`

/** project_id, person_id, feature_flag_key, hash_key */
export const returnHashKeyText = `
  INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key) VALUES (?, ?, ?, ?)
  ON CONFLICT (person_id, feature_flag_key) DO NOTHING`

/** person_id, cohort_id */
export const takeMembershipText = `DELETE FROM cohort_person WHERE person_id = ? AND cohort_id = ?`

/** person_id, cohort id. A cohort that was deleted since gets no members. */
export const returnMembershipText = `
  INSERT INTO cohort_person (person_id, cohort_id) SELECT ?, id FROM cohort WHERE id = ?
  ON CONFLICT (person_id, cohort_id) DO NOTHING`

/** person_id */
export const listHashKeysText = `
  SELECT feature_flag_key, hash_key FROM flag_hash_key_override WHERE person_id = ? ORDER BY feature_flag_key`

/** person_id */
export const listMembershipsText = `SELECT cohort_id FROM cohort_person WHERE person_id = ? ORDER BY cohort_id`

/** id */
export const deleteLinkText = `DELETE FROM import_link WHERE id = ?`

/** project_id, uuid, version */
export const hasPersonText = `SELECT 1 FROM person WHERE project_id = ? AND uuid = ? AND version = ?`

/** project_id, distinct_id, version */
export const deleteMappingText = `
  DELETE FROM person_distinct_id WHERE project_id = ? AND distinct_id = ? AND version = ?`

/** project_id, group_type_index, group_key, version */
export const deleteGroupText = `
  DELETE FROM "group" WHERE project_id = ? AND group_type_index = ? AND group_key = ? AND version = ?`

/** project_id, distinct_id, next_version */
export const raiseNextVersionText = `
  INSERT INTO personless_distinct_id (project_id, distinct_id, next_version) VALUES (?, ?, ?)
  ON CONFLICT (project_id, distinct_id) DO UPDATE SET next_version = excluded.next_version
    WHERE excluded.next_version > personless_distinct_id.next_version`

/** project_id, uuid, timestamp, import_job_id */
export const insertGeneratedText = `
  INSERT INTO import_generated (project_id, uuid, timestamp, import_job_id) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`
