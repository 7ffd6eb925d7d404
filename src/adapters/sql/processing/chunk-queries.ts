// The statements of the chunk loop, as SQL text. They are prepared once, since a chunk runs thousands of them. If a
// conditional write changes no row, another writer has changed the row first.

import { findWarningSamplesMax } from '#core/events/warning-types.ts'
import { encodePropertyMarks } from '#core/persons/property-marks-text.ts'
import { utcDay } from '#core/usage.ts'
import type { ChunkChanges, IngestionWarning } from '#ports/state/chunk-store.ts'
import { toJsonText, toSqlBoolean } from '../tables/rows.ts'

/** Thrown inside a commit's transaction to roll it back; `how` tells why. */
export class CommitRefused extends Error {
  readonly how: 'version_conflict' | 'not_owner' | 'position_moved'

  constructor(how: CommitRefused['how'] = 'version_conflict') {
    super(how)
    this.how = how
  }
}

/** Rolls the transaction back unless the number of rows is as expected: otherwise a row has changed since it was loaded. */
export function assertRowCount(count: number, expected = 1): void {
  if (count !== expected) throw new CommitRefused()
}

/** The reading statements, which differ between the engines. Their parameters are listed where each engine defines them. */
export interface LoadStatements<Text> {
  /** Projects that are not deleted. */
  readonly projects: Text
  /** Ordered by project and index; includes types that are being deleted. */
  readonly groupTypes: Text
  /** Distinct ids with their persons. Texts that are too long are null, but `text_bytes` counts them. */
  readonly mappedPersons: Text
  /** The texts of persons that were too long for `mappedPersons`, which has null instead. */
  readonly personTexts: Text
  /** The distinct ids of given persons, up to a given number of rows. */
  readonly personMappings: Text
  /** The distinct ids that were used without a person. */
  readonly personless: Text
  /** The distinct ids that were erased, with the terms of each erasure. */
  readonly erasedIds: Text
  readonly importJobs: Text
  readonly generated: Text
  /** Groups by type and key. Texts that are too long are null, as in `mappedPersons`. */
  readonly groups: Text
}

/**
 * The writing statements that differ between the engines: SQLite runs them for single rows, PostgreSQL for lists of rows.
 */
export interface WriteStatements {
  /** Updates only rows that still have the loaded version, like `updateMappings`, `updateGroups` and `deletePersons`. */
  readonly updatePersons: string
  readonly updateMappings: string
  readonly updateGroups: string
  readonly deletePersons: string
  /** Moves flag assignments of merged persons to their survivors, except for flags that the survivor already has. */
  readonly moveOverrides: string
  /** Moves memberships in static cohorts to survivors, except for cohorts that the survivor is already in. */
  readonly moveMemberships: string
  /** Stores when flags were last called: only for flags that the project has, and only if later than the stored call. */
  readonly noteCalls: string
}

/** Parameters: project_id, hash, offset. Counts the `$identify` events before the offset; their ordinals begin at 0. */
export const countIdentifiesText = `
  SELECT ordinal + 1 FROM cookieless_identify WHERE project_id = ? AND hash = ? AND log_offset < ?
  ORDER BY log_offset DESC LIMIT 1`

/** The statements that both engines run for single rows, with `?` for parameters. */
export const sharedStatements = {
  claimPosition: `
  INSERT INTO log_position (stream, owner, "offset", committed_at) VALUES (?, ?, 0, NULL)
  ON CONFLICT (stream) DO UPDATE SET owner = excluded.owner
  RETURNING "offset"`,

  /** stream, owner */
  findOwnPosition: `SELECT "offset" FROM log_position WHERE stream = ? AND owner = ?`,

  /**
   * Parameters: offset, committed_at, stream, owner, and the required previous offset, or null to accept any previous
   * offset.
   */
  advancePosition: `
  UPDATE log_position SET "offset" = ?, committed_at = ?
  WHERE stream = ? AND owner = ? AND "offset" = coalesce(?, "offset")`,

  /** Parameters: project_id, group_type, group_type_index. Inserts no row when the type or the index is taken. */
  insertGroupType: `
  INSERT INTO group_type_mapping (project_id, group_type, group_type_index) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,

  /** project_id, group_type, group_type_index */
  hasGroupType: `
  SELECT 1 FROM group_type_mapping
  WHERE project_id = ? AND group_type = ? AND group_type_index = ? AND removed = 0`,

  /** Records which persons and groups a chunk changes, so that they are copied to the mirror in the event store. */
  noteChangedSubjects: `INSERT INTO subject_change (subjects) VALUES (?)`,

  bumpRevision: `UPDATE revision SET value = value + 1 WHERE id = 1 RETURNING value`,

  /** revision, project id */
  noteRevision: `UPDATE project SET revision = ? WHERE id = ?`,
}

// The inserts of a chunk's commit. The engines differ only in how the rows are passed to these statements.

/**
 * Builds the SQL of an insert. Builds the SQL of an insert. @param columns the columns with their types, in the order of
 * the values.
 */
export type BuildInsert = (table: string, columns: string, onConflict?: string) => string

export function buildInsertStatements(insert: BuildInsert) {
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
    /** Each split replaces an earlier split of the same distinct id. */
    splits: insert(
      'person_cut',
      'project_id bigint, distinct_id text, person_uuid text, created_at bigint, cut_at bigint',
      `ON CONFLICT (project_id, distinct_id) DO UPDATE
        SET person_uuid = excluded.person_uuid, created_at = excluded.created_at, cut_at = excluded.cut_at`,
    ),
    /** Adds to the day's count and returns the new count. */
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
    /** A chunk that is processed again adds no second copy of a link. */
    links: insert(
      'import_link',
      'import_job_id bigint, distinct_id text, other_id text, dangerously int, timestamp bigint, uuid text',
      'ON CONFLICT DO NOTHING',
    ),
    /** If a job has already recorded a group type, the first record stays unchanged. */
    namedGroupTypes: insert(
      'import_group_type',
      'import_job_id bigint, group_type_index int, name text, is_added int',
      'ON CONFLICT DO NOTHING',
    ),
    /** If the job has already merged this person away, the first value of `own` stays; the other columns are replaced. */
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

/** The values of a person's row, in the order of the columns of the insert `persons`, without the project and the uuid. */
export function toPersonColumns(row: ChunkChanges['persons'][number]['row']): (string | number)[] {
  const { createdAtMs, version, lastSeenAtMs } = row
  return [
    toJsonText(row.properties),
    encodePropertyMarks(row.marks),
    createdAtMs,
    toSqlBoolean(row.isIdentified),
    version,
    lastSeenAtMs,
  ]
}

/** As `toPersonColumns`. */
export function toGroupColumns(row: ChunkChanges['groups'][number]['row']): (string | number)[] {
  return [toJsonText(row.properties), encodePropertyMarks(row.marks), row.createdAtMs, row.version]
}

interface WarningsOfDay {
  readonly columns: readonly [projectId: number, type: string, day: string, count: number, lastSeenMs: number]
  readonly warnings: readonly IngestionWarning[]
}

/** Groups warnings by project, day and type; the groups are in the same order in every worker. */
export function groupWarningsByDay(warnings: readonly IngestionWarning[]): WarningsOfDay[] {
  const byDay = Map.groupBy(
    warnings,
    ({ projectId, type, timestampMs }) => `${projectId} ${utcDay(timestampMs)} ${type}`,
  )
  return [...byDay]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, ofDay]) => {
      const { projectId, type, timestampMs } = ofDay[0]!
      const lastSeenMs = ofDay.reduce((latest, warning) => Math.max(latest, warning.timestampMs), 0)
      return { columns: [projectId, type, utcDay(timestampMs), ofDay.length, lastSeenMs], warnings: ofDay }
    })
}

/**
 * The rows of the samples: only the first warnings of a day become samples. @param countSoFar the day's number of warnings,
 * including these.
 */
export function toWarningSampleRows({ columns, warnings }: WarningsOfDay, countSoFar: number): (string | number)[][] {
  const [projectId, type, day] = columns
  const left = Math.max(0, findWarningSamplesMax(type) - (countSoFar - warnings.length))
  return warnings
    .slice(0, left)
    .map(({ timestampMs, details }) => [projectId, type, day, timestampMs, toJsonText(details)])
}
