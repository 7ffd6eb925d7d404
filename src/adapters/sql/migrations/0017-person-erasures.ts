// Erased persons. A project counts its erasures, and rows of the event store carry the count that they were made with, so
// that what came before an erasure is known without a clock. Docs: docs/decisions/0064-erased-persons.md.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const personErasures: Migration = {
  version: 17,
  name: 'person erasures',
  statements: ({ autoId, clustered, text }) => [
    `ALTER TABLE project ADD COLUMN erasures BIGINT NOT NULL DEFAULT 0`,
    // What was asked, by whom, and what became of it. `removed` is NULL until the rows are counted; `emptied` names what the
    // event store will miss without having lost it.
    `CREATE TABLE person_erasure (
      id ${autoId},
      project_id BIGINT NOT NULL,
      erasures BIGINT NOT NULL,
      mirror_version BIGINT NOT NULL,
      requested_at BIGINT NOT NULL,
      requested_by ${text},
      keeps_person INTEGER NOT NULL,
      deletes_events INTEGER NOT NULL,
      deletes_recordings INTEGER NOT NULL,
      log_id ${text} NOT NULL,
      log_ends ${text} NOT NULL,
      removed ${text},
      emptied ${text},
      done_at BIGINT
    )`,
    `CREATE INDEX person_erasure_open ON person_erasure (id) WHERE done_at IS NULL`,
    `CREATE TABLE erased_person (
      project_id BIGINT NOT NULL,
      person_uuid ${text} NOT NULL,
      erasure_id BIGINT NOT NULL,
      PRIMARY KEY (project_id, person_uuid, erasure_id)
    )${clustered}`,
    `CREATE INDEX erased_person_erasure ON erased_person (erasure_id)`,
    // Kept until the log has no record of them any more. `own_uuid`: the person that the id made, '' if that is somebody else.
    `CREATE TABLE erased_distinct_id (
      project_id BIGINT NOT NULL,
      distinct_id ${text} NOT NULL,
      erasure_id BIGINT NOT NULL,
      own_uuid ${text} NOT NULL,
      PRIMARY KEY (project_id, distinct_id, erasure_id)
    )${clustered}`,
    `CREATE INDEX erased_distinct_id_erasure ON erased_distinct_id (erasure_id)`,
    // By which an erasure finds the links of its ids.
    `CREATE INDEX import_link_distinct_id ON import_link (import_job_id, distinct_id)`,
    `CREATE INDEX import_link_other_id ON import_link (import_job_id, other_id)`,
  ],
}
