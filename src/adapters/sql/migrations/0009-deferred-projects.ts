// Projects whose records the worker skips in a stream, from an offset on, and leaves to the stream's second cursor.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const deferredProjects: Migration = {
  version: 9,
  name: 'deferred projects',
  statements: ({ text }) => [
    `CREATE TABLE deferred_project (
      stream ${text} NOT NULL,
      project_id BIGINT NOT NULL,
      from_offset BIGINT NOT NULL,
      PRIMARY KEY (stream, project_id)
    )`,
  ],
}
