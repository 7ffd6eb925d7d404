// Import jobs. The tables of the first migration were made before anything used them, and are made anew: nothing ever
// wrote to them. Docs: docs/decisions/0053-import-jobs.md.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const importJobs: Migration = {
  version: 12,
  name: 'import jobs',
  statements: ({ autoId, clustered, text }) => [
    `DROP TABLE import_job`,
    `DROP TABLE import_effect`,
    `DROP TABLE import_before_image`,
    `DROP TABLE import_generated`,
    // A job is created by a user, or collects one project's imports of one UTC day that were sent without a job.
    `CREATE TABLE import_job (
      id BIGINT PRIMARY KEY,
      project_id BIGINT NOT NULL,
      implicit_day ${text},
      name ${text} NOT NULL,
      source ${text} NOT NULL,
      state ${text} NOT NULL,
      step ${text},
      options ${text} NOT NULL,
      plan ${text} NOT NULL,
      progress ${text} NOT NULL,
      created_by ${text},
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      published_at BIGINT,
      discarded_at BIGINT
    )`,
    `CREATE UNIQUE INDEX import_job_implicit ON import_job (project_id, implicit_day) WHERE implicit_day IS NOT NULL`,
    `CREATE INDEX import_job_project ON import_job (project_id, id)`,
    // Links that a pending job will make.
    `CREATE TABLE import_link (
      id ${autoId},
      import_job_id BIGINT NOT NULL,
      distinct_id ${text} NOT NULL,
      other_id ${text} NOT NULL,
      dangerously INTEGER NOT NULL,
      timestamp BIGINT NOT NULL,
      uuid ${text} NOT NULL,
      UNIQUE (import_job_id, uuid, distinct_id, other_id)
    )`,
    `CREATE INDEX import_link_order ON import_link (import_job_id, timestamp, uuid)`,
    // What happened to events of a job, counted by reason, with some samples.
    `CREATE TABLE import_note (
      import_job_id BIGINT NOT NULL,
      reason ${text} NOT NULL,
      note_count BIGINT NOT NULL,
      PRIMARY KEY (import_job_id, reason)
    )`,
    `CREATE TABLE import_note_sample (
      id ${autoId},
      import_job_id BIGINT NOT NULL,
      reason ${text} NOT NULL,
      details ${text} NOT NULL
    )`,
    `CREATE INDEX import_note_sample_job ON import_note_sample (import_job_id, id)`,
    // A subject before and after a job was published; a later discard goes back. 'null' where it did not exist.
    `CREATE TABLE import_image (
      import_job_id BIGINT NOT NULL,
      kind ${text} NOT NULL,
      subject ${text} NOT NULL,
      project_id BIGINT NOT NULL,
      before_image ${text} NOT NULL,
      after_image ${text} NOT NULL,
      PRIMARY KEY (import_job_id, kind, subject)
    )`,
    // The time of a link or group event that an importer generated. A later job with a wider range may send it with an
    // earlier time, and takes this one, so that both rows are one event.
    `CREATE TABLE import_generated (
      project_id BIGINT NOT NULL,
      uuid ${text} NOT NULL,
      timestamp BIGINT NOT NULL,
      import_job_id BIGINT NOT NULL,
      PRIMARY KEY (project_id, uuid)
    )${clustered}`,
    // The version with which a distinct id is mapped next. Above 1 where an undone import left an override.
    `ALTER TABLE personless_distinct_id ADD COLUMN next_version BIGINT NOT NULL DEFAULT 1`,
  ],
}
