// The statements of the chunk loop that both engines share, as SQL text with `?` for parameters. They are prepared
// once, since a chunk runs thousands of them. `ChunkTexts` names the statements that differ between engines. A
// conditional write that changes no row means that another writer was first.

/**
 * The statements that differ between engines: SQLite runs them by the row, PostgreSQL by lists of rows. Each engine's
 * text documents its parameters.
 */
export interface ChunkTexts<Load> {
  /** Projects that are not deleted. */
  readonly loadProjects: Load
  /** Ordered by project and index; includes types that are being deleted. */
  readonly loadGroupTypes: Load
  /** Distinct ids with their persons. Texts that are too long are null, but `text_bytes` counts them. */
  readonly loadMappedPersons: Load
  /** The texts that were null in `loadMappedPersons`. */
  readonly loadPersonTexts: Load
  /** The distinct ids of some persons, up to a number of rows. */
  readonly loadPersonMappings: Load
  /** The distinct ids that were used without a person. */
  readonly loadPersonless: Load
  /** The distinct ids that were erased, with the terms of each erasure. */
  readonly loadErasedIds: Load
  readonly loadImportJobs: Load
  readonly loadGenerated: Load
  /** Groups by type and key; long texts as for persons. */
  readonly loadGroups: Load
  /** Existing ids stay as they are. */
  readonly insertPersonless: string
  /** Inserts no row that exists. */
  readonly insertPersons: string
  /** Only rows that still have the loaded version, as in `updateMappings` and `updateGroups`. */
  readonly updatePersons: string
  /** Only rows that still have the loaded version. */
  readonly deletePersons: string
  readonly insertMappings: string
  readonly updateMappings: string
  /** Moves flag assignments of merged persons to their survivors, except where the survivor has one. */
  readonly moveOverrides: string
  /** Moves memberships in static cohorts in the same way. */
  readonly moveMemberships: string
  readonly insertGroups: string
  readonly updateGroups: string
  /** Only flags that the project has, and only later calls than the known one. */
  readonly noteCalls: string
  /** Adds to the day's count and returns it. */
  readonly countWarnings: string
  readonly insertWarnings: string
  readonly countOutcomes: string
  /** Each replaces an earlier cut of its distinct id. */
  readonly saveCuts: string
}

export const claimPositionText = `
  INSERT INTO log_position (stream, owner, "offset", committed_at) VALUES (?, ?, 0, NULL)
  ON CONFLICT (stream) DO UPDATE SET owner = excluded.owner
  RETURNING "offset"`

/** stream, owner */
export const findOwnPositionText = `SELECT "offset" FROM log_position WHERE stream = ? AND owner = ?`

/** Parameters: offset, committed_at, stream, owner, and the offset before, null for whichever it is. */
export const advancePositionText = `
  UPDATE log_position SET "offset" = ?, committed_at = ?
  WHERE stream = ? AND owner = ? AND "offset" = coalesce(?, "offset")`

/** project_id, group_type, group_type_index. Inserts no row when the type or the index is taken. */
export const insertGroupTypeText = `
  INSERT INTO group_type_mapping (project_id, group_type, group_type_index) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`

/** id, import_undos */
export const hasImportUndosText = `SELECT 1 FROM project WHERE id = ? AND import_undos = ?`

/** project_id, group_type, group_type_index */
export const hasGroupTypeText = `
  SELECT 1 FROM group_type_mapping
  WHERE project_id = ? AND group_type = ? AND group_type_index = ? AND removed = 0`

/** The persons and groups that the chunk changes, for the mirror in the event store. */
export const noteChangedSubjectsText = `INSERT INTO subject_change (subjects) VALUES (?)`

export const bumpRevisionText = `UPDATE revision SET value = value + 1 WHERE id = 1 RETURNING value`

/** revision, project id */
export const noteRevisionText = `UPDATE project SET revision = ? WHERE id = ?`
