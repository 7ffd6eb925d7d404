// The log that the positions in `log_position` belong to: offsets mean nothing in another log. One row, or none before
// a log is bound.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const followedLog: Migration = {
  version: 2,
  name: 'followed log',
  statements: ({ text }) => [
    `CREATE TABLE followed_log (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      log_id ${text} NOT NULL,
      place ${text} NOT NULL,
      former_log_id ${text},
      begun_at ${text} NOT NULL
    )`,
  ],
}
