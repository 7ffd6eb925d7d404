// The statements of the chunk loop as SQL text, prepared once by the adapter, since a chunk runs thousands of them.
// Common subset of SQLite and PostgreSQL, with `?` for parameters. A conditional write that changes no row means that
// somebody else wrote first.

/** `(?, ?, …)` */
function placeholders(count: number): string {
  return `(${Array(count).fill('?').join(', ')})`
}

export const claimPositionText = `
  INSERT INTO log_position (lane, owner, "offset", committed_at) VALUES (?, ?, 0, NULL)
  ON CONFLICT (lane) DO UPDATE SET owner = excluded.owner
  RETURNING "offset"`

/** lane, owner */
export const findOwnPositionText = `SELECT "offset" FROM log_position WHERE lane = ? AND owner = ?`

/** Parameters: offset, committed_at, lane, owner, and the offset before, null for whichever it is. */
export const advancePositionText = `
  UPDATE log_position SET "offset" = ?, committed_at = ?
  WHERE lane = ? AND owner = ? AND "offset" = coalesce(?, "offset")`

/** Parameters: longest properties, longest marks (longer ones are left out), project_id, then distinct ids. */
export const loadMappedPersonsText = (count: number): string => `
  SELECT d.distinct_id, d.version AS mapping_version, p.id, p.project_id, p.uuid,
    octet_length(p.properties) + octet_length(p.property_marks) AS text_bytes,
    CASE WHEN octet_length(p.properties) <= ? THEN p.properties END AS properties,
    CASE WHEN octet_length(p.property_marks) <= ? THEN p.property_marks END AS property_marks,
    p.created_at, p.is_identified, p.version, p.last_seen_at
  FROM person_distinct_id AS d JOIN person AS p ON p.id = d.person_id
  WHERE d.project_id = ? AND d.distinct_id IN ${placeholders(count)}`

/** Parameters: person ids. */
export const loadPersonTextsText = (count: number): string => `
  SELECT id, properties, property_marks FROM person WHERE id IN ${placeholders(count)}`

/** Parameters: person ids, rows at most. */
export const loadPersonMappingsText = (count: number): string => `
  SELECT person_id, distinct_id, version FROM person_distinct_id WHERE person_id IN ${placeholders(count)} LIMIT ?`

/** Parameters: project_id, then distinct ids. */
export const loadPersonlessText = (count: number): string => `
  SELECT distinct_id FROM personless_distinct_id WHERE project_id = ? AND distinct_id IN ${placeholders(count)}`

/** Parameters: project ids. */
export const loadProjectsText = (count: number): string => `
  SELECT * FROM project WHERE deleted = 0 AND id IN ${placeholders(count)}`

/** Parameters: project ids. */
export const loadGroupTypesText = (count: number): string => `
  SELECT * FROM group_type_mapping WHERE project_id IN ${placeholders(count)} ORDER BY project_id, group_type_index`

/** Parameters: longest properties, longest marks (longer ones are left out), project_id, group_type_index, then keys. */
export const loadGroupsText = (count: number): string => `
  SELECT project_id, group_type_index, group_key,
    octet_length(group_properties) + octet_length(property_marks) AS text_bytes,
    CASE WHEN octet_length(group_properties) <= ? THEN group_properties END AS group_properties,
    CASE WHEN octet_length(property_marks) <= ? THEN property_marks END AS property_marks,
    created_at, version
  FROM "group" WHERE project_id = ? AND group_type_index = ? AND group_key IN ${placeholders(count)}`

export const findPersonIdText = `SELECT id FROM person WHERE project_id = ? AND uuid = ?`

export const insertPersonText = `
  INSERT INTO person
    (project_id, uuid, properties, property_marks, created_at, is_identified, version, last_seen_at)
  VALUES ${placeholders(8)} ON CONFLICT (project_id, uuid) DO NOTHING`

/** …, project_id, uuid, loaded version */
export const updatePersonText = `
  UPDATE person SET properties = ?, property_marks = ?, created_at = ?, is_identified = ?, version = ?, last_seen_at = ?
  WHERE project_id = ? AND uuid = ? AND version = ?`

/** id, loaded version */
export const deletePersonText = `DELETE FROM person WHERE id = ? AND version = ?`

/** project_id, distinct_id, person_id, version */
export const insertMappingText = `
  INSERT INTO person_distinct_id (project_id, distinct_id, person_id, version)
  VALUES ${placeholders(4)} ON CONFLICT (project_id, distinct_id) DO NOTHING`

/** person_id, version, project_id, distinct_id, loaded version */
export const updateMappingText = `
  UPDATE person_distinct_id SET person_id = ?, version = ? WHERE project_id = ? AND distinct_id = ? AND version = ?`

/** person_id */
export const hasMappingsText = `SELECT 1 FROM person_distinct_id WHERE person_id = ? LIMIT 1`

/** survivor's id, merged person's id. A row that the survivor has stays as it is. */
export const moveOverridesText = `
  INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
  SELECT project_id, ?, feature_flag_key, hash_key FROM flag_hash_key_override WHERE person_id = ?
  ON CONFLICT (person_id, feature_flag_key) DO NOTHING`

export const deleteOverridesText = `DELETE FROM flag_hash_key_override WHERE person_id = ?`

/** survivor's id, merged person's id */
export const moveMembershipsText = `
  INSERT INTO cohort_person (person_id, cohort_id) SELECT ?, cohort_id FROM cohort_person WHERE person_id = ?
  ON CONFLICT (person_id, cohort_id) DO NOTHING`

export const deleteMembershipsText = `DELETE FROM cohort_person WHERE person_id = ?`

/** project_id, distinct_id */
export const hasMappingText = `SELECT 1 FROM person_distinct_id WHERE project_id = ? AND distinct_id = ?`

/** project_id, distinct_id */
export const hasPersonlessText = `SELECT 1 FROM personless_distinct_id WHERE project_id = ? AND distinct_id = ?`

export const insertPersonlessText = `
  INSERT INTO personless_distinct_id (project_id, distinct_id) VALUES (?, ?)
  ON CONFLICT (project_id, distinct_id) DO NOTHING`

/** project_id, group_type, group_type_index. Either being taken leaves no row. */
export const insertGroupTypeText = `
  INSERT INTO group_type_mapping (project_id, group_type, group_type_index) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`

/** project_id, group_type, group_type_index */
export const hasGroupTypeText = `
  SELECT 1 FROM group_type_mapping
  WHERE project_id = ? AND group_type = ? AND group_type_index = ? AND removed = 0`

export const insertGroupText = `
  INSERT INTO "group"
    (project_id, group_type_index, group_key, group_properties, property_marks, created_at, version)
  VALUES ${placeholders(7)} ON CONFLICT (project_id, group_type_index, group_key) DO NOTHING`

/** …, project_id, group_type_index, group_key, loaded version */
export const updateGroupText = `
  UPDATE "group" SET group_properties = ?, property_marks = ?, created_at = ?, version = ?
  WHERE project_id = ? AND group_type_index = ? AND group_key = ? AND version = ?`

export const bumpRevisionText = `UPDATE revision SET value = value + 1 WHERE id = 1 RETURNING value`

/** revision, project id */
export const noteRevisionText = `UPDATE project SET revision = ? WHERE id = ?`

/** project_id, type, day, count, last_seen; answers the day's count so far. */
export const countWarningsText = `
  INSERT INTO ingestion_warning_day (project_id, type, day, warning_count, last_seen) VALUES ${placeholders(5)}
  ON CONFLICT (project_id, type, day) DO UPDATE SET
    warning_count = ingestion_warning_day.warning_count + excluded.warning_count,
    last_seen = CASE WHEN excluded.last_seen > ingestion_warning_day.last_seen
      THEN excluded.last_seen ELSE ingestion_warning_day.last_seen END
  RETURNING warning_count`

export const insertWarningText = `
  INSERT INTO ingestion_warning (project_id, type, day, timestamp, details) VALUES ${placeholders(5)}`

export const countOutcomeText = `
  INSERT INTO chunk_outcome (project_id, lane, outcome, reason, event_count) VALUES ${placeholders(5)}
  ON CONFLICT (project_id, lane, outcome, reason) DO UPDATE SET
    event_count = chunk_outcome.event_count + excluded.event_count`
