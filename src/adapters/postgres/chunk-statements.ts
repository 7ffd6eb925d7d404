// The chunk's statements for PostgreSQL: with lists (`unnest`) instead of one statement for each row. Comments list the
// parameters. Statements for a single row come from `adapters/sql/processing/chunk-queries.ts`, with numbered parameters.

import {
  buildInsertStatements,
  type LoadStatements,
  type WriteStatements,
} from '#adapters/sql/processing/chunk-queries.ts'

/** `?` → `$1`, `$2`, … */
export function toNumberedParameters(text: string): string {
  let count = 0
  return text.replaceAll('?', () => `$${++count}`)
}

export function toNumberedParametersOfAll<T extends Readonly<Record<string, string>>>(
  texts: T,
): { readonly [Name in keyof T]: string } {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, toNumberedParameters(text)])) as T
}

export const insertStatements = buildInsertStatements((table, columns, onConflict = '') => {
  const pairs = columns.split(', ').map(column => column.split(' '))
  const lists = pairs.map(([, type], index) => `$${index + 1}::${type}[]`)
  return `INSERT INTO ${table} (${pairs.map(([name]) => name)}) SELECT * FROM unnest(${lists}) ${onConflict}`
})

export const loadStatements: LoadStatements<string> = {
  /** project ids */
  projects: `
  SELECT *, (EXISTS (SELECT 1 FROM import_job WHERE state = 'discarding' AND project_id = project.id)
    OR EXISTS (
      SELECT 1 FROM person_repair WHERE project_id = project.id AND done_at IS NULL AND changes_persons = 1))::int AS is_undone,
    (EXISTS (SELECT 1 FROM erased_distinct_id WHERE project_id = project.id))::int AS has_erased_ids
  FROM project WHERE deleted = 0 AND id = ANY($1::bigint[])`,

  /** project ids */
  groupTypes: `
  SELECT * FROM group_type_mapping WHERE project_id = ANY($1::bigint[]) ORDER BY project_id, group_type_index`,

  /** project ids, distinct ids, the maximum length of texts: longer texts are left out */
  mappedPersons: `
  SELECT d.distinct_id, d.version AS mapping_version, p.id, p.project_id, p.uuid,
    octet_length(p.properties) + octet_length(p.property_marks) AS text_bytes,
    CASE WHEN octet_length(p.properties) <= $3::int THEN p.properties END AS properties,
    CASE WHEN octet_length(p.property_marks) <= $3::int THEN p.property_marks END AS property_marks,
    p.created_at, p.is_identified, p.version, p.last_seen_at
  FROM unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id
  JOIN person AS p ON p.id = d.person_id`,

  /** person ids */
  personTexts: `SELECT id, properties, property_marks FROM person WHERE id = ANY($1::bigint[])`,

  /** person ids, the most rows of one person, the most rows in total */
  personMappings: `
  SELECT d.person_id, d.distinct_id, d.version
  FROM unnest($1::bigint[]) AS k (person_id)
  CROSS JOIN LATERAL (
    SELECT person_id, distinct_id, version FROM person_distinct_id WHERE person_id = k.person_id LIMIT $2::int
  ) AS d
  LIMIT $3::int`,

  /** project ids, distinct ids */
  personless: `
  SELECT d.project_id, d.distinct_id, d.next_version
  FROM unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  JOIN personless_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id`,

  /** project ids, distinct ids */
  erasedIds: `
  SELECT d.project_id, d.distinct_id, e.deletes_events, e.deletes_recordings, e.log_id, e.log_ends
  FROM unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  JOIN erased_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id
  JOIN person_erasure AS e ON e.id = d.erasure_id`,

  /** job ids */
  importJobs: `
  SELECT id, project_id, state, step, options,
    (EXISTS (SELECT 1 FROM import_note WHERE import_job_id = import_job.id))::int AS has_notes
  FROM import_job WHERE id = ANY($1::bigint[])`,

  /** project ids, uuids */
  generated: `
  SELECT g.project_id, g.uuid, g.timestamp, g.import_job_id FROM unnest($1::bigint[], $2::text[]) AS k (project_id, uuid)
  JOIN import_generated AS g ON g.project_id = k.project_id AND g.uuid = k.uuid`,

  /** project ids, type indexes, keys, the maximum length of texts: longer texts are left out */
  groups: `
  SELECT g.project_id, g.group_type_index, g.group_key,
    octet_length(g.group_properties) + octet_length(g.property_marks) AS text_bytes,
    CASE WHEN octet_length(g.group_properties) <= $4::int THEN g.group_properties END AS group_properties,
    CASE WHEN octet_length(g.property_marks) <= $4::int THEN g.property_marks END AS property_marks,
    g.created_at, g.version
  FROM unnest($1::bigint[], $2::int[], $3::text[]) AS k (project_id, type_index, group_key)
  JOIN "group" AS g
    ON g.project_id = k.project_id AND g.group_type_index = k.type_index AND g.group_key = k.group_key`,
}

export const writeStatements: WriteStatements = {
  /** ids, versions in the table, then the new values. */
  updatePersons: `
  UPDATE person AS p SET properties = v.properties, property_marks = v.property_marks, created_at = v.created_at,
    is_identified = v.is_identified, version = v.version, last_seen_at = v.last_seen_at
  FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::int[], $7::bigint[], $8::bigint[])
    AS v (id, stored_version, properties, property_marks, created_at, is_identified, version, last_seen_at)
  WHERE p.id = v.id AND p.version = v.stored_version`,

  /** ids, versions in the table */
  deletePersons: `
  DELETE FROM person AS p USING unnest($1::bigint[], $2::bigint[]) AS v (id, stored_version)
  WHERE p.id = v.id AND p.version = v.stored_version`,

  /** project ids, distinct ids, versions in the table, then the new values. */
  updateMappings: `
  UPDATE person_distinct_id AS d SET person_id = v.person_id, version = v.version
  FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
    AS v (project_id, distinct_id, stored_version, person_id, version)
  WHERE d.project_id = v.project_id AND d.distinct_id = v.distinct_id AND d.version = v.stored_version`,

  /**
   * Merged persons' ids, their survivors' ids. A row that the survivor already has stays unchanged; otherwise the person
   * that comes first in the lists provides it. One statement both deletes and inserts: with two statements, the second
   * could delete a row that a front wrote in between. A row written later turns the deletion of the person into a conflict.
   */
  moveOverrides: `
  WITH gone AS (
    DELETE FROM flag_hash_key_override WHERE person_id = ANY($1::bigint[])
    RETURNING project_id, person_id, feature_flag_key, hash_key)
  INSERT INTO flag_hash_key_override (project_id, person_id, feature_flag_key, hash_key)
  SELECT DISTINCT ON (v.survivor_id, o.feature_flag_key) o.project_id, v.survivor_id, o.feature_flag_key, o.hash_key
  FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS v (merged_id, survivor_id, place)
  JOIN gone AS o ON o.person_id = v.merged_id
  ORDER BY v.survivor_id, o.feature_flag_key, v.place
  ON CONFLICT (person_id, feature_flag_key) DO NOTHING`,

  /** Merged persons' ids, their survivors' ids. One statement, for the same reason as in `moveOverrides`. */
  moveMemberships: `
  WITH gone AS (DELETE FROM cohort_person WHERE person_id = ANY($1::bigint[]) RETURNING person_id, cohort_id)
  INSERT INTO cohort_person (person_id, cohort_id)
  SELECT DISTINCT v.survivor_id, c.cohort_id
  FROM unnest($1::bigint[], $2::bigint[]) AS v (merged_id, survivor_id)
  JOIN gone AS c ON c.person_id = v.merged_id
  ORDER BY v.survivor_id, c.cohort_id
  ON CONFLICT (person_id, cohort_id) DO NOTHING`,

  /** project ids, type indexes, keys, versions in the table, then the new values. */
  updateGroups: `
  UPDATE "group" AS g SET group_properties = v.properties, property_marks = v.property_marks,
    created_at = v.created_at, version = v.version
  FROM unnest($1::bigint[], $2::int[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::bigint[], $8::bigint[])
    AS v (project_id, type_index, group_key, stored_version, properties, property_marks, created_at, version)
  WHERE g.project_id = v.project_id AND g.group_type_index = v.type_index AND g.group_key = v.group_key
    AND g.version = v.stored_version`,

  /**
   * project ids, keys, times. Rows are written in the order of the ids, which is the same in every worker. Only workers
   * write to this table, so a commit never waits here for an edit of a flag.
   */
  noteCalls: `
  INSERT INTO flag_last_call (flag_id, called_at)
  SELECT f.id, k.called_at
  FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS k (project_id, key, called_at)
  JOIN feature_flag AS f ON f.project_id = k.project_id AND f.key = k.key AND f.deleted = 0
  ORDER BY f.id
  ON CONFLICT (flag_id) DO UPDATE SET called_at = excluded.called_at
    WHERE excluded.called_at > flag_last_call.called_at`,
}

/** Statements that lock rows, in the same order in all workers, and statements that find existing rows to check them. */
export const lockStatements = {
  /**
   * project ids, uuids. Every worker locks rows in the order of their uuid, so that no two workers wait for each other. The
   * lock is weaker than FOR UPDATE, so that writes of rows that refer to a person, such as a front's flag assignment, need
   * not wait.
   */
  lockPersons: `
  SELECT p.id, p.project_id, p.uuid, p.version
  FROM unnest($1::bigint[], $2::text[]) AS k (project_id, uuid)
  JOIN person AS p ON p.project_id = k.project_id AND p.uuid = k.uuid
  ORDER BY p.uuid, p.project_id FOR NO KEY UPDATE OF p`,

  /** project ids, distinct ids */
  lockMappings: `
  SELECT d.project_id, d.distinct_id, d.version
  FROM unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id
  ORDER BY d.project_id, d.distinct_id FOR NO KEY UPDATE OF d`,

  /** project ids, distinct ids */
  deletePersonless: `
  DELETE FROM personless_distinct_id AS d USING unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  WHERE d.project_id = k.project_id AND d.distinct_id = k.distinct_id`,

  /** project ids, distinct ids */
  findMapped: `
  SELECT d.distinct_id FROM unnest($1::bigint[], $2::text[]) AS k (project_id, distinct_id)
  JOIN person_distinct_id AS d ON d.project_id = k.project_id AND d.distinct_id = k.distinct_id`,

  /** project ids, type indexes, keys */
  lockGroups: `
  SELECT g.project_id, g.group_type_index, g.group_key, g.version
  FROM unnest($1::bigint[], $2::int[], $3::text[]) AS k (project_id, type_index, group_key)
  JOIN "group" AS g
    ON g.project_id = k.project_id AND g.group_type_index = k.type_index AND g.group_key = k.group_key
  ORDER BY g.project_id, g.group_type_index, g.group_key FOR NO KEY UPDATE OF g`,
}
