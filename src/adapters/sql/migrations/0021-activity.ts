// Adds the activity log, with an entry for each existing version of a flag, and gives authors, which were only labels, a
// field for an id.

import type { Migration } from './migration.ts'

const authorColumns = [
  ...(['feature_flag', 'cohort', 'survey', 'experiment', 'import_job'] as const).map(
    table => [table, 'created_by'] as const,
  ),
  ['feature_flag_version', 'changed_by'],
  ['person_erasure', 'requested_by'],
] as const

export const activity: Migration = {
  version: 21,
  name: 'activity',
  statements: ({ autoId, text, authorWithLabel }) => [
    ...authorColumns.map(
      ([table, column]) => `UPDATE ${table} SET ${column} = ${authorWithLabel(column)} WHERE ${column} IS NOT NULL`,
    ),
    `ALTER TABLE early_access_feature ADD COLUMN created_by ${text}`,
    // project_id: null for what belongs to the instance. The long column comes last, since SQLite reads through it to reach
    // the columns after it.
    `CREATE TABLE activity_log (
      id ${autoId},
      project_id BIGINT,
      kind ${text} NOT NULL,
      item_id ${text} NOT NULL,
      item_name ${text} NOT NULL,
      activity ${text} NOT NULL,
      version BIGINT,
      author ${text},
      created_at BIGINT NOT NULL,
      changes ${text} NOT NULL
    )`,
    `CREATE INDEX activity_log_project ON activity_log (project_id, id)`,
    // This index leaves out project and kind, since a page is in the order of the entries' ids, whatever their project and
    // kind.
    `CREATE INDEX activity_log_item ON activity_log (item_id, id)`,
    // The LIKE pattern matches only the `deleted` field of the flag itself, which precedes its `version` in the snapshot.
    `INSERT INTO activity_log
        (project_id, kind, item_id, item_name, activity, version, author, created_at, changes)
      SELECT v.project_id, 'feature_flag', CAST(v.flag_id AS TEXT), f.key,
        CASE
          WHEN v.version = 1 THEN 'created'
          WHEN v.snapshot LIKE '%"deleted":true,"version":' || v.version || ',%' THEN 'deleted'
          ELSE 'updated'
        END,
        v.version, v.changed_by, v.created_at, '[]'
      FROM feature_flag_version v JOIN feature_flag f ON f.id = v.flag_id
      ORDER BY v.created_at, v.flag_id, v.version`,
  ],
}
