// The first tables: projects, keys, flags, persons, groups, the worker's position and balance, warnings, usage, imports.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const ground: Migration = {
  version: 1,
  name: 'ground',
  statements: ({ autoId, clustered, text, tellRevision }) => [
    // Ids that users see are taken from here, so that neither engine uses one twice, even after a delete.
    `CREATE TABLE id_sequence (name ${text} PRIMARY KEY, last_id BIGINT NOT NULL)`,
    // Import jobs start at 2: partitions 0 and 1 of the event store are for live events and for imports without a job.
    `INSERT INTO id_sequence (name, last_id) VALUES ('project', 0), ('feature_flag', 0), ('import_job', 1)`,

    `CREATE TABLE revision (id INTEGER PRIMARY KEY CHECK (id = 1), value BIGINT NOT NULL)`,
    `INSERT INTO revision (id, value) VALUES (1, 0)`,
    ...tellRevision,

    `CREATE TABLE project (
      id BIGINT PRIMARY KEY,
      uuid ${text} NOT NULL UNIQUE,
      name ${text} NOT NULL,
      api_token ${text} NOT NULL,
      timezone ${text} NOT NULL,
      anonymize_ips INTEGER NOT NULL,
      geoip_enabled INTEGER NOT NULL,
      property_matching_version INTEGER NOT NULL,
      quotas ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      deleted INTEGER NOT NULL,
      revision BIGINT NOT NULL
    )`,
    `CREATE UNIQUE INDEX project_api_token ON project (api_token) WHERE deleted = 0`,
    `CREATE INDEX project_revision ON project (revision)`,

    `CREATE TABLE personal_api_key (
      id ${text} PRIMARY KEY,
      label ${text} NOT NULL,
      secret_hash ${text} NOT NULL UNIQUE,
      scopes ${text} NOT NULL,
      scoped_project_ids ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      last_used_at BIGINT
    )`,

    `CREATE TABLE feature_flag (
      id BIGINT PRIMARY KEY,
      project_id BIGINT NOT NULL,
      key ${text} NOT NULL,
      name ${text} NOT NULL,
      filters ${text} NOT NULL,
      active INTEGER NOT NULL,
      deleted INTEGER NOT NULL,
      version BIGINT NOT NULL,
      ensure_experience_continuity INTEGER NOT NULL,
      bucketing_identifier ${text},
      evaluation_runtime ${text} NOT NULL,
      evaluation_contexts ${text} NOT NULL,
      has_encrypted_payloads INTEGER NOT NULL,
      is_remote_configuration INTEGER NOT NULL,
      tags ${text} NOT NULL,
      has_experiment INTEGER NOT NULL,
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      created_by ${text}
    )`,
    `CREATE UNIQUE INDEX feature_flag_key ON feature_flag (project_id, key) WHERE deleted = 0`,
    `CREATE INDEX feature_flag_project ON feature_flag (project_id, id)`,
    `CREATE TABLE feature_flag_version (
      flag_id BIGINT NOT NULL,
      version BIGINT NOT NULL,
      project_id BIGINT NOT NULL,
      snapshot ${text} NOT NULL,
      changed_by ${text},
      created_at BIGINT NOT NULL,
      PRIMARY KEY (flag_id, version)
    )`,

    `CREATE TABLE person (
      id ${autoId},
      project_id BIGINT NOT NULL,
      uuid ${text} NOT NULL,
      properties ${text} NOT NULL,
      property_marks ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      is_identified INTEGER NOT NULL,
      version BIGINT NOT NULL,
      last_seen_at BIGINT NOT NULL,
      UNIQUE (project_id, uuid)
    )`,
    `CREATE INDEX person_newest ON person (project_id, id)`,
    `CREATE TABLE person_distinct_id (
      project_id BIGINT NOT NULL,
      distinct_id ${text} NOT NULL,
      person_id BIGINT NOT NULL REFERENCES person (id),
      version BIGINT NOT NULL,
      PRIMARY KEY (project_id, distinct_id)
    )${clustered}`,
    `CREATE INDEX person_distinct_id_person ON person_distinct_id (person_id)`,
    `CREATE TABLE personless_distinct_id (
      project_id BIGINT NOT NULL,
      distinct_id ${text} NOT NULL,
      PRIMARY KEY (project_id, distinct_id)
    )${clustered}`,
    `CREATE TABLE flag_hash_key_override (
      project_id BIGINT NOT NULL,
      person_id BIGINT NOT NULL REFERENCES person (id),
      feature_flag_key ${text} NOT NULL,
      hash_key ${text} NOT NULL,
      PRIMARY KEY (person_id, feature_flag_key)
    )${clustered}`,

    `CREATE TABLE group_type_mapping (
      project_id BIGINT NOT NULL,
      group_type ${text} NOT NULL,
      group_type_index INTEGER NOT NULL CHECK (group_type_index BETWEEN 0 AND 4),
      PRIMARY KEY (project_id, group_type_index),
      UNIQUE (project_id, group_type)
    )`,
    `CREATE TABLE "group" (
      project_id BIGINT NOT NULL,
      group_type_index INTEGER NOT NULL,
      group_key ${text} NOT NULL,
      group_properties ${text} NOT NULL,
      property_marks ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      version BIGINT NOT NULL,
      PRIMARY KEY (project_id, group_type_index, group_key)
    )`,

    `CREATE TABLE log_position (
      lane ${text} PRIMARY KEY,
      owner ${text} NOT NULL,
      "offset" BIGINT NOT NULL,
      committed_at BIGINT
    )`,
    `CREATE TABLE chunk_outcome (
      project_id BIGINT NOT NULL,
      lane ${text} NOT NULL,
      outcome ${text} NOT NULL,
      reason ${text} NOT NULL,
      event_count BIGINT NOT NULL,
      PRIMARY KEY (project_id, lane, outcome, reason)
    )`,

    // The exact count of a UTC day, and a few samples.
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

    `CREATE TABLE usage_daily (
      project_id BIGINT NOT NULL,
      day ${text} NOT NULL,
      events_charged BIGINT NOT NULL DEFAULT 0,
      events_imported BIGINT NOT NULL DEFAULT 0,
      flag_requests BIGINT NOT NULL DEFAULT 0,
      events_frozen INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (project_id, day)
    )`,

    // A job is created by a user, or collects one project's imports of one UTC day that were sent without a job.
    `CREATE TABLE import_job (
      id BIGINT PRIMARY KEY,
      project_id BIGINT NOT NULL,
      implicit_day ${text},
      state ${text} NOT NULL,
      source ${text} NOT NULL,
      source_range ${text},
      source_timezone ${text},
      tool_version ${text},
      mapping_sha256 ${text},
      approval_sha256 ${text},
      options ${text} NOT NULL,
      progress ${text} NOT NULL,
      report ${text},
      created_by ${text},
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      published_at BIGINT,
      discarded_at BIGINT
    )`,
    `CREATE UNIQUE INDEX import_job_implicit ON import_job (project_id, implicit_day) WHERE implicit_day IS NOT NULL`,
    `CREATE INDEX import_job_project ON import_job (project_id, id)`,
    // What a pending job will do to persons, groups and links once it is published. `op` says which columns hold what:
    // a person's or group's set, set_once or unset of \`key\`; a link of distinct_id with other_distinct_id.
    `CREATE TABLE import_effect (
      id ${autoId},
      import_job_id BIGINT NOT NULL,
      project_id BIGINT NOT NULL,
      op ${text} NOT NULL,
      distinct_id ${text},
      other_distinct_id ${text},
      group_type ${text},
      group_key ${text},
      key ${text},
      value ${text},
      timestamp BIGINT NOT NULL,
      uuid ${text} NOT NULL
    )`,
    `CREATE INDEX import_effect_job ON import_effect (import_job_id, id)`,
    // A person or group as it was before a published job changed it; a later discard restores it.
    `CREATE TABLE import_before_image (
      import_job_id BIGINT NOT NULL,
      subject_kind ${text} NOT NULL,
      subject ${text} NOT NULL,
      project_id BIGINT NOT NULL,
      image ${text} NOT NULL,
      PRIMARY KEY (import_job_id, subject_kind, subject)
    )`,
    // Link and group events that an importer generated are deduplicated by uuid alone: a wider range may give them an
    // earlier time.
    `CREATE TABLE import_generated (
      project_id BIGINT NOT NULL,
      uuid ${text} NOT NULL,
      import_job_id BIGINT NOT NULL,
      timestamp BIGINT NOT NULL,
      PRIMARY KEY (project_id, uuid)
    )${clustered}`,
  ],
}
