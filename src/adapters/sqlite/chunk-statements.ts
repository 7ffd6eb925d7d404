// The chunk's statements for SQLite: each is for one row, or for a list of ids with one parameter for each id.

import {
  buildInsertStatements,
  type LoadStatements,
  type WriteStatements,
} from '#adapters/sql/processing/chunk-queries.ts'

/** `(?, ?, …)` */
function placeholders(count: number): string {
  return `(${Array(count).fill('?').join(', ')})`
}

export const loadStatements: LoadStatements<(count: number) => string> = {
  /** Parameters: project ids. */
  projects: count => `
  SELECT *, EXISTS (SELECT 1 FROM import_job WHERE state = 'discarding' AND project_id = project.id)
    OR EXISTS (
      SELECT 1 FROM person_repair WHERE project_id = project.id AND done_at IS NULL AND changes_persons = 1) AS is_undone,
    EXISTS (SELECT 1 FROM erased_distinct_id WHERE project_id = project.id) AS has_erased_ids
  FROM project WHERE deleted = 0 AND id IN ${placeholders(count)}`,

  /** Parameters: project ids. */
  groupTypes: count => `
  SELECT * FROM group_type_mapping WHERE project_id IN ${placeholders(count)} ORDER BY project_id, group_type_index`,

  /** Parameters: longest properties, longest marks (longer ones are left out), project_id, then distinct ids. */
  mappedPersons: count => `
  SELECT d.distinct_id, d.version AS mapping_version, p.id, p.project_id, p.uuid,
    octet_length(p.properties) + octet_length(p.property_marks) AS text_bytes,
    CASE WHEN octet_length(p.properties) <= ? THEN p.properties END AS properties,
    CASE WHEN octet_length(p.property_marks) <= ? THEN p.property_marks END AS property_marks,
    p.created_at, p.is_identified, p.version, p.last_seen_at
  FROM person_distinct_id AS d JOIN person AS p ON p.id = d.person_id
  WHERE d.project_id = ? AND d.distinct_id IN ${placeholders(count)}`,

  /** Parameters: person ids. */
  personTexts: count => `
  SELECT id, properties, property_marks FROM person WHERE id IN ${placeholders(count)}`,

  /** Parameters: person ids, rows at most. */
  personMappings: count => `
  SELECT person_id, distinct_id, version FROM person_distinct_id WHERE person_id IN ${placeholders(count)} LIMIT ?`,

  /** Parameters: project_id, then distinct ids. */
  personless: count => `
  SELECT distinct_id, next_version FROM personless_distinct_id
  WHERE project_id = ? AND distinct_id IN ${placeholders(count)}`,

  /** Parameters: project_id, then distinct ids. */
  erasedIds: count => `
  SELECT d.project_id, d.distinct_id, e.deletes_events, e.deletes_recordings, e.log_id, e.log_ends
  FROM erased_distinct_id AS d JOIN person_erasure AS e ON e.id = d.erasure_id
  WHERE d.project_id = ? AND d.distinct_id IN ${placeholders(count)}`,

  /** Parameters: job ids. */
  importJobs: count => `
  SELECT id, project_id, state, step, options, EXISTS (SELECT 1 FROM import_note WHERE import_job_id = import_job.id) AS has_notes
  FROM import_job WHERE id IN ${placeholders(count)}`,

  /** Parameters: project_id, then uuids. */
  generated: count => `
  SELECT project_id, uuid, timestamp, import_job_id FROM import_generated WHERE project_id = ? AND uuid IN ${placeholders(count)}`,

  /** Parameters: longest properties, longest marks (longer ones are left out), project_id, group_type_index, then keys. */
  groups: count => `
  SELECT project_id, group_type_index, group_key,
    octet_length(group_properties) + octet_length(property_marks) AS text_bytes,
    CASE WHEN octet_length(group_properties) <= ? THEN group_properties END AS group_properties,
    CASE WHEN octet_length(property_marks) <= ? THEN property_marks END AS property_marks,
    created_at, version
  FROM "group" WHERE project_id = ? AND group_type_index = ? AND group_key IN ${placeholders(count)}`,
}

export const insertStatements = buildInsertStatements((table, columns, onConflict = '') => {
  const names = columns.split(', ').map(column => column.split(' ')[0])
  return `INSERT INTO ${table} (${names}) VALUES ${placeholders(names.length)} ${onConflict}`
})

/** Statements for single rows, with checks and clean-up that PostgreSQL does within lists. Comments list the parameters. */
export const rowStatements = {
  /** the new values, then project_id, uuid, loaded version */
  updatePersons: `
  UPDATE person SET properties = ?, property_marks = ?, created_at = ?, is_identified = ?, version = ?, last_seen_at = ?
  WHERE project_id = ? AND uuid = ? AND version = ?`,

  /** id, loaded version */
  deletePersons: `DELETE FROM person WHERE id = ? AND version = ?`,

  /** person_id, version, project_id, distinct_id, loaded version */
  updateMappings: `
  UPDATE person_distinct_id SET person_id = ?, version = ? WHERE project_id = ? AND distinct_id = ? AND version = ?`,

  /** survivor's id, merged person's id. A row that the survivor already has stays unchanged. */
  moveOverrides: `
  INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
  SELECT project_id, ?, feature_flag_key, hash_key FROM flag_hash_key_override WHERE person_id = ?
  ON CONFLICT (person_id, feature_flag_key) DO NOTHING`,

  /** survivor's id, merged person's id */
  moveMemberships: `
  INSERT INTO cohort_person (person_id, cohort_id) SELECT ?, cohort_id FROM cohort_person WHERE person_id = ?
  ON CONFLICT (person_id, cohort_id) DO NOTHING`,

  /** the new values, then project_id, group_type_index, group_key, loaded version */
  updateGroups: `
  UPDATE "group" SET group_properties = ?, property_marks = ?, created_at = ?, version = ?
  WHERE project_id = ? AND group_type_index = ? AND group_key = ? AND version = ?`,

  /** called_at, project_id, key */
  noteCalls: `
  INSERT INTO flag_last_call (flag_id, called_at)
  SELECT id, ? FROM feature_flag WHERE project_id = ? AND key = ? AND deleted = 0
  ON CONFLICT (flag_id) DO UPDATE SET called_at = excluded.called_at
    WHERE excluded.called_at > flag_last_call.called_at`,

  findPersonId: `SELECT id FROM person WHERE project_id = ? AND uuid = ?`,

  /** person_id */
  hasMappings: `SELECT 1 FROM person_distinct_id WHERE person_id = ? LIMIT 1`,

  deleteOverrides: `DELETE FROM flag_hash_key_override WHERE person_id = ?`,

  deleteMemberships: `DELETE FROM cohort_person WHERE person_id = ?`,

  /** project_id, distinct_id */
  hasMapping: `SELECT 1 FROM person_distinct_id WHERE project_id = ? AND distinct_id = ?`,

  /** project_id, distinct_id */
  hasPersonless: `SELECT 1 FROM personless_distinct_id WHERE project_id = ? AND distinct_id = ?`,

  /** id, import_undos */
  hasImportUndos: `SELECT 1 FROM project WHERE id = ? AND import_undos = ?`,
} satisfies WriteStatements & Record<string, string>
