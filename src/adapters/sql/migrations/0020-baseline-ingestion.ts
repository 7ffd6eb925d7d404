// The baseline's tables of ingestion: the worker's position and balance, what the worker knows about the event store,
// usage, imports.

import type { DdlDialect } from './migration.ts'

export function buildIngestionTables(dialect: DdlDialect): string[] {
  return [...processingTables(dialect), ...accountingTables(dialect), ...importTables(dialect)]
}

function processingTables({ autoId, clustered, text }: DdlDialect): string[] {
  return [
    // The log that the positions in `log_position` belong to: offsets mean nothing in another log. One row, or none before
    // a log is bound.
    `CREATE TABLE followed_log (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      log_id ${text} NOT NULL,
      place ${text} NOT NULL,
      former_log_id ${text},
      begun_at ${text} NOT NULL
    )`,
    `CREATE TABLE log_position (
      stream ${text} PRIMARY KEY,
      owner ${text} NOT NULL,
      "offset" BIGINT NOT NULL,
      committed_at BIGINT
    )`,
    // Projects whose records in a stream the worker skips from an offset on, and leaves to the stream's second cursor.
    `CREATE TABLE deferred_project (
      stream ${text} NOT NULL,
      project_id BIGINT NOT NULL,
      from_offset BIGINT NOT NULL,
      PRIMARY KEY (stream, project_id)
    )`,
    `CREATE TABLE chunk_outcome (
      project_id BIGINT NOT NULL,
      lane ${text} NOT NULL,
      outcome ${text} NOT NULL,
      reason ${text} NOT NULL,
      event_count BIGINT NOT NULL,
      PRIMARY KEY (project_id, lane, outcome, reason)
    )`,

    // What the worker found and left in the event store, which is a separate system and may be restored older, truncated or
    // empty. One row, or none before a worker has run.
    `CREATE TABLE event_store_mark (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      mark ${text} NOT NULL
    )`,
    // How far the mirror of persons and groups in the event store is filled, and which changes it lacks.
    `CREATE TABLE subject_mirror (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      version BIGINT NOT NULL,
      fill ${text} NOT NULL
    )`,
    `INSERT INTO subject_mirror (id, version, fill) VALUES (1, 0, 'null')`,
    `CREATE TABLE subject_change (id ${autoId}, subjects ${text} NOT NULL)`,

    // Today's cookieless visitors in projects that use the stateful mode: their `$identify` events and their sessions, each
    // with the offset of the record that began it, so that a record that is read again finds the same visitors as the first
    // time. Deleted by day, with the day's salt. Docs: docs/wire/ingestion.md 13.
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
  ]
}

function accountingTables({ autoId, text }: DdlDialect): string[] {
  return [
    // Ingestion warnings: the exact count per UTC day, and a few samples.
    `CREATE TABLE ingestion_warning_day (
      project_id BIGINT NOT NULL,
      type ${text} NOT NULL,
      day ${text} NOT NULL,
      warning_count BIGINT NOT NULL,
      last_seen BIGINT NOT NULL,
      PRIMARY KEY (project_id, type, day)
    )`,
    `CREATE TABLE ingestion_warning (
      id ${autoId},
      project_id BIGINT NOT NULL,
      type ${text} NOT NULL,
      day ${text} NOT NULL,
      timestamp BIGINT NOT NULL,
      details ${text} NOT NULL
    )`,
    `CREATE INDEX ingestion_warning_type ON ingestion_warning (project_id, type, timestamp)`,
    `CREATE INDEX ingestion_warning_age ON ingestion_warning (day)`,

    // `events_charged` counts live events and includes `exceptions`, `llm_events` and `survey_responses`, but not
    // recordings.
    `CREATE TABLE usage_daily (
      project_id BIGINT NOT NULL,
      day ${text} NOT NULL,
      events_charged BIGINT NOT NULL DEFAULT 0,
      events_imported BIGINT NOT NULL DEFAULT 0,
      events_frozen INTEGER NOT NULL DEFAULT 0,
      exceptions BIGINT NOT NULL DEFAULT 0,
      llm_events BIGINT NOT NULL DEFAULT 0,
      survey_responses BIGINT NOT NULL DEFAULT 0,
      recordings BIGINT NOT NULL DEFAULT 0,
      flag_requests BIGINT NOT NULL DEFAULT 0,
      PRIMARY KEY (project_id, day)
    )`,
    // How many events fronts refused, by UTC day and reason. Counts only events of known projects, in requests that a front
    // answered.
    `CREATE TABLE refused_daily (
      project_id BIGINT NOT NULL,
      day ${text} NOT NULL,
      reason ${text} NOT NULL,
      refused_count BIGINT NOT NULL,
      last_seen BIGINT NOT NULL,
      PRIMARY KEY (project_id, day, reason)
    )`,
  ]
}

/** Docs: docs/decisions/0053-import-jobs.md. */
function importTables({ autoId, clustered, text }: DdlDialect): string[] {
  return [
    // A job is created by a user or is implicit: an implicit job collects a project's imports of one UTC day that were sent
    // without a job. public_id: NULL for implicit jobs, which no client names. stored_rows: how many rows were stored for
    // the job, so that publishing notices lost rows; NULL for implicit jobs. failure_code, failing_since: why publishing or
    // discarding fails, and since when; NULL while it does not fail. final_at: since when the job can no longer be undone;
    // NULL while it can be undone.
    `CREATE TABLE import_job (
      id BIGINT PRIMARY KEY,
      public_id BIGINT,
      project_id BIGINT NOT NULL,
      implicit_day ${text},
      name ${text} NOT NULL,
      source ${text} NOT NULL,
      state ${text} NOT NULL,
      step ${text},
      options ${text} NOT NULL,
      plan ${text} NOT NULL,
      progress ${text} NOT NULL,
      stored_rows BIGINT,
      failure_code ${text},
      failing_since BIGINT,
      created_by ${text},
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      published_at BIGINT,
      discarded_at BIGINT,
      final_at BIGINT
    )`,
    `CREATE UNIQUE INDEX import_job_implicit ON import_job (project_id, implicit_day) WHERE implicit_day IS NOT NULL`,
    `CREATE UNIQUE INDEX import_job_public ON import_job (public_id) WHERE public_id IS NOT NULL`,
    `CREATE INDEX import_job_project ON import_job (project_id, id)`,
    `CREATE INDEX import_job_state ON import_job (state, project_id)`,

    // Links between distinct ids that a pending job will make when it is published.
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
    // An erasure finds the links of its ids by this index.
    `CREATE INDEX import_link_distinct_id ON import_link (import_job_id, distinct_id)`,
    `CREATE INDEX import_link_other_id ON import_link (import_job_id, other_id)`,

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

    // Each subject (such as a person or a group) before and after a job was published, for a later discard. 'null' if it
    // did not exist.
    `CREATE TABLE import_image (
      import_job_id BIGINT NOT NULL,
      kind ${text} NOT NULL,
      subject ${text} NOT NULL,
      project_id BIGINT NOT NULL,
      before_image ${text} NOT NULL,
      after_image ${text} NOT NULL,
      PRIMARY KEY (import_job_id, kind, subject)
    )`,
    // The time of a link or group event that an importer generated. A later job with a wider range may send the event again
    // with an earlier time; the stored time then replaces the earlier time, so that both rows are the same event.
    `CREATE TABLE import_generated (
      project_id BIGINT NOT NULL,
      uuid ${text} NOT NULL,
      timestamp BIGINT NOT NULL,
      import_job_id BIGINT NOT NULL,
      PRIMARY KEY (project_id, uuid)
    )${clustered}`,
  ]
}
