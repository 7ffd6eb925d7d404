// The statements of the chunk loop, as SQL text. They are prepared once, since a chunk runs thousands of them. A
// conditional write that changes no row means that another writer was first.

/** Why a commit leaves its transaction. */
export class CommitRefused extends Error {
  readonly how: 'version_conflict' | 'not_owner' | 'position_moved'

  constructor(how: CommitRefused['how'] = 'version_conflict') {
    super(how)
    this.how = how
  }
}

/** Ends the transaction unless each row still was as it was loaded. */
export function expectCount(count: number, expected = 1): void {
  if (count !== expected) throw new CommitRefused()
}

/** The reads, which differ between engines. Each engine's text documents its parameters. */
export interface LoadTexts<Text> {
  /** Projects that are not deleted. */
  readonly projects: Text
  /** Ordered by project and index; includes types that are being deleted. */
  readonly groupTypes: Text
  /** Distinct ids with their persons. Texts that are too long are null, but `text_bytes` counts them. */
  readonly mappedPersons: Text
  /** The texts that were null in `mappedPersons`. */
  readonly personTexts: Text
  /** The distinct ids of some persons, up to a number of rows. */
  readonly personMappings: Text
  /** The distinct ids that were used without a person. */
  readonly personless: Text
  /** The distinct ids that were erased, with the terms of each erasure. */
  readonly erasedIds: Text
  readonly importJobs: Text
  readonly generated: Text
  /** Groups by type and key; long texts as for persons. */
  readonly groups: Text
}

/** The writes that differ between engines: SQLite runs them by the row, PostgreSQL by lists of rows. */
export interface WriteTexts {
  /** Only rows that still have the loaded version, as in `updateMappings`, `updateGroups` and `deletePersons`. */
  readonly updatePersons: string
  readonly updateMappings: string
  readonly updateGroups: string
  readonly deletePersons: string
  /** Moves flag assignments of merged persons to their survivors, except where the survivor has one. */
  readonly moveOverrides: string
  /** Moves memberships in static cohorts in the same way. */
  readonly moveMemberships: string
  /** Only flags that the project has, and only later calls than the known one. */
  readonly noteCalls: string
}

/** project_id, hash, offset: how many `$identify` events there are before that. Ordinals ascend with offsets. */
export const countIdentifiesText = `
  SELECT ordinal + 1 FROM cookieless_identify WHERE project_id = ? AND hash = ? AND log_offset < ?
  ORDER BY log_offset DESC LIMIT 1`

/** The statements that both engines run by the row, with `?` for parameters. */
export const sharedTexts = {
  claimPosition: `
  INSERT INTO log_position (stream, owner, "offset", committed_at) VALUES (?, ?, 0, NULL)
  ON CONFLICT (stream) DO UPDATE SET owner = excluded.owner
  RETURNING "offset"`,

  /** stream, owner */
  findOwnPosition: `SELECT "offset" FROM log_position WHERE stream = ? AND owner = ?`,

  /** Parameters: offset, committed_at, stream, owner, and the offset before, null for whichever it is. */
  advancePosition: `
  UPDATE log_position SET "offset" = ?, committed_at = ?
  WHERE stream = ? AND owner = ? AND "offset" = coalesce(?, "offset")`,

  /** project_id, group_type, group_type_index. Inserts no row when the type or the index is taken. */
  insertGroupType: `
  INSERT INTO group_type_mapping (project_id, group_type, group_type_index) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,

  /** project_id, group_type, group_type_index */
  hasGroupType: `
  SELECT 1 FROM group_type_mapping
  WHERE project_id = ? AND group_type = ? AND group_type_index = ? AND removed = 0`,

  /** The persons and groups that the chunk changes, for the mirror in the event store. */
  noteChangedSubjects: `INSERT INTO subject_change (subjects) VALUES (?)`,

  bumpRevision: `UPDATE revision SET value = value + 1 WHERE id = 1 RETURNING value`,

  /** revision, project id */
  noteRevision: `UPDATE project SET revision = ? WHERE id = ?`,
}
