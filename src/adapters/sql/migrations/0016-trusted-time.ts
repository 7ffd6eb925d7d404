// What deletes by age goes by a time of its own, which one look at the wall clock does not move; and a job whose undoing
// was given up says so. NULL: it can be undone.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const trustedTime: Migration = {
  version: 16,
  name: 'trusted time',
  statements: () => [
    `CREATE TABLE trusted_time (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      at_ms BIGINT NOT NULL,
      ahead_ms BIGINT NOT NULL,
      stood_ms BIGINT NOT NULL
    )`,
    'ALTER TABLE import_job ADD COLUMN final_at BIGINT',
  ],
}
