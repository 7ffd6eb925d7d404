// Removes the stored values from before an import, which undoing used to restore, and stores what undoing needs in addition
// to the events: when the job's publishing began, the assignments of persons that it merged away, and the group types that
// its events name.

import type { Migration } from './migration.ts'

const undoing = `state = 'discarding' AND published_at IS NOT NULL AND step NOT IN ('draining', 'clearing')`

export const history: Migration = {
  version: 22,
  name: 'history',
  statements: ({ text, clustered, jsonField }) => [
    'ALTER TABLE import_job ADD COLUMN publish_began_at BIGINT',
    // A job without persons, ids and groups has no `publish_start` image, so the time when it was published or updated is
    // used.
    `UPDATE import_job SET publish_began_at = coalesce(
        (SELECT CAST(${jsonField('before_image', 'atMs')} AS BIGINT) FROM import_image
          WHERE import_job_id = import_job.id AND kind = 'publish_start'),
        published_at, updated_at)
      WHERE implicit_day IS NULL
        AND (published_at IS NOT NULL OR (state = 'publishing' AND step <> 'draining'))`,

    // Each row belongs to a person that the job merged away. `own`: the person's flag assignments and static cohorts;
    // `taken`: those of them that the survivor got.
    `CREATE TABLE import_assignments (
      import_job_id BIGINT NOT NULL,
      person_uuid ${text} NOT NULL,
      survivor_uuid ${text} NOT NULL,
      own ${text} NOT NULL,
      taken ${text} NOT NULL,
      PRIMARY KEY (import_job_id, person_uuid)
    )${clustered}`,
    `INSERT INTO import_assignments (import_job_id, person_uuid, survivor_uuid, own, taken)
      SELECT import_job_id, subject, ${jsonField('after_image', 'personUuid')}, before_image, after_image
      FROM import_image WHERE kind = 'assignments'`,

    // is_added: whether the job added the type; discarding the job then deletes the type if nothing else uses it.
    `CREATE TABLE import_group_type (
      import_job_id BIGINT NOT NULL,
      group_type_index INTEGER NOT NULL,
      name ${text} NOT NULL,
      is_added INTEGER NOT NULL,
      PRIMARY KEY (import_job_id, group_type_index)
    )${clustered}`,
    `INSERT INTO import_group_type (import_job_id, group_type_index, name, is_added)
      SELECT import_job_id, CAST(subject AS INTEGER), ${jsonField('after_image', 'name')},
        CASE before_image WHEN 'null' THEN 1 ELSE 0 END
      FROM import_image WHERE kind = 'group_type'`,
    'DROP TABLE import_image',

    // Where undoing has already begun, the job's events were deleted first, so what else to undo can no longer be found.
    `INSERT INTO import_note (import_job_id, reason, note_count)
      SELECT id, 'undo_left:history_is_incomplete', 1 FROM import_job WHERE ${undoing} ON CONFLICT DO NOTHING`,
    `UPDATE import_job SET step = 'undo' WHERE ${undoing}`,
  ],
}
