// The mirror of persons and groups in the event store: what it lacks, and how far it is filled.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const subjectMirror: Migration = {
  version: 11,
  name: 'subject mirror',
  statements: ({ autoId, text }) => [
    `CREATE TABLE subject_mirror (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      version BIGINT NOT NULL,
      fill ${text} NOT NULL
    )`,
    `INSERT INTO subject_mirror (id, version, fill) VALUES (1, 0, 'null')`,
    `CREATE TABLE subject_change (id ${autoId}, subjects ${text} NOT NULL)`,
  ],
}
