// The inserts of a chunk's commit. The engines differ only in how they take the rows.

/** @param columns each with its type, in the order of the values. */
export type InsertText = (table: string, columns: string, onConflict?: string) => string

export function buildInserts(insert: InsertText) {
  return {
    personless: insert(
      'personless_distinct_id',
      'project_id bigint, distinct_id text',
      'ON CONFLICT (project_id, distinct_id) DO NOTHING',
    ),
    persons: insert(
      'person',
      'project_id bigint, uuid text, properties text, property_marks text, created_at bigint, is_identified int, version bigint, last_seen_at bigint',
      'ON CONFLICT (project_id, uuid) DO NOTHING',
    ),
    mappings: insert(
      'person_distinct_id',
      'project_id bigint, distinct_id text, person_id bigint, version bigint',
      'ON CONFLICT (project_id, distinct_id) DO NOTHING',
    ),
    groups: insert(
      '"group"',
      'project_id bigint, group_type_index int, group_key text, group_properties text, property_marks text, created_at bigint, version bigint',
      'ON CONFLICT (project_id, group_type_index, group_key) DO NOTHING',
    ),
    /** Each replaces an earlier cut of its distinct id. */
    cuts: insert(
      'person_cut',
      'project_id bigint, distinct_id text, person_uuid text, created_at bigint, cut_at bigint',
      `ON CONFLICT (project_id, distinct_id) DO UPDATE
        SET person_uuid = excluded.person_uuid, created_at = excluded.created_at, cut_at = excluded.cut_at`,
    ),
    /** Adds to the day's count and returns it. */
    warningCounts: insert(
      'ingestion_warning_day',
      'project_id bigint, type text, day text, warning_count bigint, last_seen bigint',
      `ON CONFLICT (project_id, type, day) DO UPDATE SET
        warning_count = ingestion_warning_day.warning_count + excluded.warning_count,
        last_seen = CASE WHEN excluded.last_seen > ingestion_warning_day.last_seen
          THEN excluded.last_seen ELSE ingestion_warning_day.last_seen END
      RETURNING warning_count, project_id, type, day`,
    ),
    warnings: insert('ingestion_warning', 'project_id bigint, type text, day text, timestamp bigint, details text'),
    outcomes: insert(
      'chunk_outcome',
      'project_id bigint, lane text, outcome text, reason text, event_count bigint',
      `ON CONFLICT (project_id, lane, outcome, reason) DO UPDATE SET
        event_count = chunk_outcome.event_count + excluded.event_count`,
    ),
    identifies: insert(
      'cookieless_identify',
      'project_id bigint, hash text, log_offset bigint, uuid text, ordinal bigint, day text',
      'ON CONFLICT DO NOTHING',
    ),
    sessions: insert(
      'cookieless_session',
      'project_id bigint, hash text, identifies bigint, log_offset bigint, session_id text, last_at bigint, day text',
      'ON CONFLICT (project_id, hash, identifies, log_offset) DO UPDATE SET last_at = excluded.last_at',
    ),
    /** A chunk that runs again adds nothing. */
    links: insert(
      'import_link',
      'import_job_id bigint, distinct_id text, other_id text, dangerously int, timestamp bigint, uuid text',
      'ON CONFLICT DO NOTHING',
    ),
    /** The first record of a type stays. */
    namedGroupTypes: insert(
      'import_group_type',
      'import_job_id bigint, group_type_index int, name text, is_added int',
      'ON CONFLICT DO NOTHING',
    ),
    /** When a person that the job already merged away is written again, its first `own` is kept. */
    assignments: insert(
      'import_assignments',
      'import_job_id bigint, person_uuid text, survivor_uuid text, own text, taken text',
      `ON CONFLICT (import_job_id, person_uuid) DO UPDATE
        SET survivor_uuid = excluded.survivor_uuid, taken = excluded.taken`,
    ),
    generated: insert(
      'import_generated',
      'project_id bigint, uuid text, timestamp bigint, import_job_id bigint',
      'ON CONFLICT DO NOTHING',
    ),
  }
}
