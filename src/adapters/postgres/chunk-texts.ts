// The chunk's statements that PostgreSQL gets in its own way: with lists (`unnest`) instead of one statement for each row.
// The ones that concern a single row are those of `adapters/sql/chunk-queries.ts`, with numbered parameters.

/** `?` → `$1`, `$2`, … */
export function numbered(text: string): string {
  let count = 0
  return text.replaceAll('?', () => `$${++count}`)
}

/** project ids, distinct ids, the longest text: longer ones are left out */
export const loadMappedPersonsText = `
  SELECT d.distinct_id, d.version AS mapping_version, p.id, p.project_id, p.uuid,
    octet_length(p.properties) + octet_length(p.property_marks) AS text_bytes,
    CASE WHEN octet_length(p.properties) <= $3::int THEN p.properties END AS properties,
    CASE WHEN octet_length(p.property_marks) <= $3::int THEN p.property_marks END AS property_marks,
    p.created_at, p.is_identified, p.version, p.last_seen_at
  FROM unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id
  JOIN person AS p ON p.id = d.person_id`

/** person ids */
export const loadPersonTextsText = `SELECT id, properties, property_marks FROM person WHERE id = ANY($1::bigint[])`

/** person ids, rows of a person at most, rows at most */
export const loadPersonMappingsText = `
  SELECT d.person_id, d.distinct_id, d.version
  FROM unnest($1::bigint[]) AS k (person_id)
  CROSS JOIN LATERAL (
    SELECT person_id, distinct_id, version FROM person_distinct_id WHERE person_id = k.person_id LIMIT $2::int
  ) AS d
  LIMIT $3::int`

/** project ids, distinct ids */
export const loadPersonlessText = `
  SELECT d.project_id, d.distinct_id
  FROM unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  JOIN personless_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id`

/** project ids */
export const loadProjectsText = `SELECT * FROM project WHERE deleted = 0 AND id = ANY($1::bigint[])`

/** project ids */
export const loadGroupTypesText = `
  SELECT * FROM group_type_mapping WHERE project_id = ANY($1::bigint[]) ORDER BY project_id, group_type_index`

/** project ids, type indexes, keys, the longest text: longer ones are left out */
export const loadGroupsText = `
  SELECT g.project_id, g.group_type_index, g.group_key,
    octet_length(g.group_properties) + octet_length(g.property_marks) AS text_bytes,
    CASE WHEN octet_length(g.group_properties) <= $4::int THEN g.group_properties END AS group_properties,
    CASE WHEN octet_length(g.property_marks) <= $4::int THEN g.property_marks END AS property_marks,
    g.created_at, g.version
  FROM unnest($1::bigint[], $2::int[], $3::text[]) AS k (project_id, type_index, group_key)
  JOIN "group" AS g
    ON g.project_id = k.project_id AND g.group_type_index = k.type_index AND g.group_key = k.group_key`

/**
 * project ids, uuids. Rows are locked in the order of their uuid, by every worker, so that no two wait for each other.
 * Not FOR UPDATE: what refers to a person, such as a flag assignment that a front writes, need not wait.
 */
export const lockPersonsText = `
  SELECT p.id, p.project_id, p.uuid, p.version
  FROM unnest($1::bigint[], $2::text[]) AS k (project_id, uuid)
  JOIN person AS p ON p.project_id = k.project_id AND p.uuid = k.uuid
  ORDER BY p.uuid, p.project_id FOR NO KEY UPDATE OF p`

export const insertPersonsText = `
  INSERT INTO person (project_id, uuid, properties, property_marks, created_at, is_identified, version, last_seen_at)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::int[], $7::bigint[],
    $8::bigint[])
  ON CONFLICT (project_id, uuid) DO NOTHING RETURNING id, project_id, uuid`

/** ids, versions in the table, then the new values. */
export const updatePersonsText = `
  UPDATE person AS p SET properties = v.properties, property_marks = v.property_marks, created_at = v.created_at,
    is_identified = v.is_identified, version = v.version, last_seen_at = v.last_seen_at
  FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::int[], $7::bigint[], $8::bigint[])
    AS v (id, stored_version, properties, property_marks, created_at, is_identified, version, last_seen_at)
  WHERE p.id = v.id AND p.version = v.stored_version`

/** ids, versions in the table */
export const deletePersonsText = `
  DELETE FROM person AS p USING unnest($1::bigint[], $2::bigint[]) AS v (id, stored_version)
  WHERE p.id = v.id AND p.version = v.stored_version`

/** project ids, distinct ids */
export const lockMappingsText = `
  SELECT d.project_id, d.distinct_id, d.version
  FROM unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id
  ORDER BY d.project_id, d.distinct_id FOR NO KEY UPDATE OF d`

export const insertMappingsText = `
  INSERT INTO person_distinct_id (project_id, distinct_id, person_id, version)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[])
  ON CONFLICT (project_id, distinct_id) DO NOTHING`

/** project ids, distinct ids, versions in the table, then the new values. */
export const updateMappingsText = `
  UPDATE person_distinct_id AS d SET person_id = v.person_id, version = v.version
  FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS v (project_id, distinct_id, stored_version, person_id, version)
  WHERE d.project_id = v.project_id AND d.distinct_id = v.distinct_id AND d.version = v.stored_version`

/**
 * Merged persons' ids, their survivors' ids. A row that the survivor has stays as it is; else the row of the person that
 * comes first in the lists is taken. One statement takes rows away and puts them there: of two, the second would take away
 * what a front wrote between them. What is written later holds up the person's own deletion, as a conflict.
 */
export const moveOverridesText = `
  WITH gone AS (
    DELETE FROM flag_hash_key_override WHERE person_id = ANY($1::bigint[])
    RETURNING project_id, person_id, feature_flag_key, hash_key)
  INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
  SELECT DISTINCT ON (v.survivor_id, o.feature_flag_key) o.project_id, v.survivor_id, o.feature_flag_key, o.hash_key
  FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS v (merged_id, survivor_id, place)
  JOIN gone AS o ON o.person_id = v.merged_id
  ORDER BY v.survivor_id, o.feature_flag_key, v.place
  ON CONFLICT (person_id, feature_flag_key) DO NOTHING`

/** Merged persons' ids, their survivors' ids. In one statement for the same reason. */
export const moveMembershipsText = `
  WITH gone AS (DELETE FROM cohort_person WHERE person_id = ANY($1::bigint[]) RETURNING person_id, cohort_id)
  INSERT INTO cohort_person (person_id, cohort_id)
  SELECT DISTINCT v.survivor_id, c.cohort_id
  FROM unnest($1::bigint[], $2::bigint[]) AS v (merged_id, survivor_id)
  JOIN gone AS c ON c.person_id = v.merged_id
  ORDER BY v.survivor_id, c.cohort_id
  ON CONFLICT (person_id, cohort_id) DO NOTHING`

/** project ids, distinct ids; answers those that were not there. */
export const insertPersonlessText = `
  INSERT INTO personless_distinct_id (project_id, distinct_id) SELECT * FROM unnest($1::bigint[], $2::text[])
  ON CONFLICT (project_id, distinct_id) DO NOTHING RETURNING project_id, distinct_id`

/** project ids, distinct ids */
export const deletePersonlessText = `
  DELETE FROM personless_distinct_id AS d USING unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  WHERE d.project_id = k.project_id AND d.distinct_id = k.distinct_id`

/** project ids, distinct ids */
export const findMappedText = `
  SELECT d.distinct_id FROM unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id`

/** project ids, type indexes, keys */
export const lockGroupsText = `
  SELECT g.project_id, g.group_type_index, g.group_key, g.version
  FROM unnest($1::bigint[], $2::int[], $3::text[]) AS k (project_id, type_index, group_key)
  JOIN "group" AS g
    ON g.project_id = k.project_id AND g.group_type_index = k.type_index AND g.group_key = k.group_key
  ORDER BY g.project_id, g.group_type_index, g.group_key FOR NO KEY UPDATE OF g`

export const insertGroupsText = `
  INSERT INTO "group" (project_id, group_type_index, group_key, group_properties, property_marks, created_at, version)
  SELECT * FROM unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
  ON CONFLICT (project_id, group_type_index, group_key) DO NOTHING`

/** project ids, type indexes, keys, versions in the table, then the new values. */
export const updateGroupsText = `
  UPDATE "group" AS g SET group_properties = v.properties, property_marks = v.property_marks,
    created_at = v.created_at, version = v.version
  FROM unnest($1::bigint[], $2::int[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::bigint[])
    AS v (project_id, type_index, group_key, stored_version, properties, property_marks, created_at, version)
  WHERE g.project_id = v.project_id AND g.group_type_index = v.type_index AND g.group_key = v.group_key
    AND g.version = v.stored_version`

/** Answers each day's count so far. */
export const countWarningsText = `
  INSERT INTO ingestion_warning_day (project_id, type, day, warning_count, last_seen)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
  ON CONFLICT (project_id, type, day) DO UPDATE SET
    warning_count = ingestion_warning_day.warning_count + excluded.warning_count,
    last_seen = greatest(ingestion_warning_day.last_seen, excluded.last_seen)
  RETURNING project_id, type, day, warning_count`

export const insertWarningsText = `
  INSERT INTO ingestion_warning (project_id, type, day, timestamp, details)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[])`

export const countOutcomesText = `
  INSERT INTO chunk_outcome (project_id, lane, outcome, reason, event_count)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[])
  ON CONFLICT (project_id, lane, outcome, reason) DO UPDATE SET
    event_count = chunk_outcome.event_count + excluded.event_count`
