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

/** import_job_id, kind, subject, project_id, before_image, after_image */
export const saveUndoRecordText = `
  INSERT INTO import_image (import_job_id, kind, subject, project_id, before_image, after_image)
  VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (import_job_id, kind, subject) DO UPDATE SET after_image = excluded.after_image`

/** import_job_id, kind, subject, project_id, before_image, after_image. Replaces the whole of it. */
export const rewriteUndoRecordText = `
  INSERT INTO import_image (import_job_id, kind, subject, project_id, before_image, after_image)
  VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (import_job_id, kind, subject) DO UPDATE
    SET before_image = excluded.before_image, after_image = excluded.after_image`

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

/** import_job_id, kind, subject */
export const deleteUndoRecordText = `DELETE FROM import_image WHERE import_job_id = ? AND kind = ? AND subject = ?`

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
