// What the worker knows of today's cookieless visitors in projects of the stateful mode: their `$identify` events and their
// sessions, each with the offset of the record that began it, so that a record that is read again finds what it found first.
// Deleted by day, with the day's salt. Docs: docs/wire/ingestion.md 13.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const cookielessVisitors: Migration = {
  version: 18,
  name: 'cookieless visitors',
  statements: ({ clustered, text }) => [
    `CREATE TABLE cookieless_identify (
      project_id BIGINT NOT NULL,
      hash ${text} NOT NULL,
      log_offset BIGINT NOT NULL,
      uuid ${text} NOT NULL,
      ordinal BIGINT NOT NULL,
      day ${text} NOT NULL,
      PRIMARY KEY (project_id, hash, log_offset)
    )${clustered}`,
    `CREATE UNIQUE INDEX cookieless_identify_uuid ON cookieless_identify (project_id, hash, uuid)`,
    `CREATE INDEX cookieless_identify_day ON cookieless_identify (day)`,
    `CREATE TABLE cookieless_session (
      project_id BIGINT NOT NULL,
      hash ${text} NOT NULL,
      identifies BIGINT NOT NULL,
      log_offset BIGINT NOT NULL,
      session_id ${text} NOT NULL,
      last_at BIGINT NOT NULL,
      day ${text} NOT NULL,
      PRIMARY KEY (project_id, hash, identifies, log_offset)
    )${clustered}`,
    `CREATE INDEX cookieless_session_day ON cookieless_session (day)`,
  ],
}
