// What the worker found and left in the event store, which is a separate system and may be restored older, truncated or
// empty. One row, or none before a worker has run.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const eventStoreMark: Migration = {
  version: 6,
  name: 'event store mark',
  statements: ({ text }) => [
    `CREATE TABLE event_store_mark (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      mark ${text} NOT NULL
    )`,
  ],
}
