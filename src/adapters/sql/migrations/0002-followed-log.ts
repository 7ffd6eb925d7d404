// Which log the positions of `log_position` belong to: offsets mean nothing in another one. One row, or none before a
// log was bound.

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
