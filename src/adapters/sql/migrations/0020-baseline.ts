// The whole schema as of 0.2.0. Migrations 1 to 19 belong to unreleased versions: with separate numbers, released and
// unreleased versions recognise and refuse each other's states (docs/decisions/0070-one-baseline.md).

import { buildIngestionTables } from './0020-baseline-ingestion.ts'
import type { DdlDialect, Migration } from './migration.ts'

export const baseline: Migration = {
  version: 20,
  name: 'baseline',
  statements: dialect => [
    ...instanceTables(dialect),
    ...projectTables(dialect),
    ...flagTables(dialect),
    ...personTables(dialect),
    ...cohortTables(dialect),
    ...buildIngestionTables(dialect),
  ],
}

function instanceTables({ text, notifyRevision, saltTable }: DdlDialect): string[] {
  return [
    // Ids that users see are taken from this table, so that neither engine uses an id twice, even after a deletion.
    `CREATE TABLE id_sequence (name ${text} PRIMARY KEY, last_id BIGINT NOT NULL)`,
    // Import jobs start at 2: partitions 0 and 1 of the event store are for live events and for imports without a job.
    `INSERT INTO id_sequence (name, last_id)
      VALUES ('project', 0), ('feature_flag', 0), ('import_job', 1), ('cohort', 0), ('experiment', 0)`,

    `CREATE TABLE revision (id INTEGER PRIMARY KEY CHECK (id = 1), value BIGINT NOT NULL)`,
    `INSERT INTO revision (id, value) VALUES (1, 0)`,
    ...notifyRevision,

    `CREATE TABLE personal_api_key (
      id ${text} PRIMARY KEY,
      label ${text} NOT NULL,
      secret_hash ${text} NOT NULL UNIQUE,
      scopes ${text} NOT NULL,
      scoped_project_ids ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      last_used_at BIGINT
    )`,

    // The time by which rows are deleted by age: a single wrong reading of the system's clock does not change it.
    `CREATE TABLE trusted_time (
      id INTEGER PRIMARY KEY CHECK (id = 1),
      at_ms BIGINT NOT NULL,
      ahead_ms BIGINT NOT NULL,
      stood_ms BIGINT NOT NULL
    )`,

    // The worker that runs a schedule for all workers, and when other workers may take the schedule over. Without a row, no
    // worker runs it.
    `CREATE TABLE schedule_lease (
      name ${text} PRIMARY KEY,
      owner ${text} NOT NULL,
      expires_at BIGINT NOT NULL
    )`,

    // The salts with which visitors without cookies are hashed. Only on PostgreSQL: next to a state file, salts are files.
    ...saltTable,
  ]
}

function projectTables({ text }: DdlDialect): string[] {
  return [
    // import_undos: how often discarding an import has begun, so that chunks notice that what they have loaded may be
    // undone. erasures: how often persons were erased. Each row of the event store has the count of the time when it was
    // created, so rows from before an erasure are recognised without a clock.
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
      client_settings ${text} NOT NULL,
      ingestion_settings ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      deleted INTEGER NOT NULL,
      revision BIGINT NOT NULL,
      import_undos BIGINT NOT NULL DEFAULT 0,
      erasures BIGINT NOT NULL DEFAULT 0
    )`,
    `CREATE UNIQUE INDEX project_api_token ON project (api_token) WHERE deleted = 0`,
    `CREATE INDEX project_revision ON project (revision)`,

    // role: primary or backup. The backup key is the previous key, which stays valid for a while after a rotation.
    `CREATE TABLE secret_api_key (
      project_id BIGINT NOT NULL REFERENCES project (id),
      role ${text} NOT NULL,
      secret_hash ${text} NOT NULL UNIQUE,
      masked ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      PRIMARY KEY (project_id, role)
    )`,
  ]
}

function flagTables({ text }: DdlDialect): string[] {
  return [
    // conditions_since: when the flag's filters, or whether it is active, last changed.
    `CREATE TABLE feature_flag (
      id BIGINT PRIMARY KEY,
      project_id BIGINT NOT NULL,
      key ${text} NOT NULL,
      name ${text} NOT NULL,
      filters ${text} NOT NULL,
      active INTEGER NOT NULL,
      archived INTEGER NOT NULL,
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
      conditions_since BIGINT NOT NULL,
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
    // In a separate table, since every chunk writes it: the flag's row may hold a megabyte of filters and be locked by an
    // edit.
    `CREATE TABLE flag_last_call (flag_id BIGINT PRIMARY KEY, called_at BIGINT NOT NULL)`,

    // owns_flag: whether the feature (or experiment) created its flag. If it took over an existing flag, the flag has other
    // uses, too.
    `CREATE TABLE early_access_feature (
      id ${text} PRIMARY KEY,
      project_id BIGINT NOT NULL,
      feature_flag_id BIGINT,
      owns_flag INTEGER NOT NULL,
      name ${text} NOT NULL,
      description ${text} NOT NULL,
      stage ${text} NOT NULL,
      documentation_url ${text} NOT NULL,
      payload ${text} NOT NULL,
      created_at BIGINT NOT NULL
    )`,
    `CREATE INDEX early_access_feature_project ON early_access_feature (project_id, created_at)`,

    // content: metrics, parameters, description and the like.
    `CREATE TABLE experiment (
      id BIGINT PRIMARY KEY,
      project_id BIGINT NOT NULL,
      name ${text} NOT NULL,
      feature_flag_id BIGINT NOT NULL,
      owns_flag INTEGER NOT NULL,
      content ${text} NOT NULL,
      start_date BIGINT,
      end_date BIGINT,
      archived INTEGER NOT NULL,
      deleted INTEGER NOT NULL,
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      created_by ${text}
    )`,
    `CREATE INDEX experiment_project ON experiment (project_id, id)`,

    // content: questions, conditions, appearance and everything else that is passed to clients unchanged.
    `CREATE TABLE survey (
      id ${text} PRIMARY KEY,
      project_id BIGINT NOT NULL,
      name ${text} NOT NULL,
      type ${text} NOT NULL,
      content ${text} NOT NULL,
      linked_flag_id BIGINT,
      targeting_flag_id BIGINT,
      internal_targeting_flag_id BIGINT,
      start_date BIGINT,
      end_date BIGINT,
      archived INTEGER NOT NULL,
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      created_by ${text}
    )`,
    `CREATE INDEX survey_project ON survey (project_id, created_at)`,
  ]
}

function personTables({ autoId, clustered, text }: DdlDialect): string[] {
  return [
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
    // The ids of one person in order, so that a page of them is read without sorting the rest.
    `CREATE INDEX person_distinct_id_of_person ON person_distinct_id (person_id, distinct_id)`,
    // next_version: the version that the id gets when it is next mapped to a person. Above 1 if an undone import left an
    // override.
    `CREATE TABLE personless_distinct_id (
      project_id BIGINT NOT NULL,
      distinct_id ${text} NOT NULL,
      next_version BIGINT NOT NULL DEFAULT 1,
      PRIMARY KEY (project_id, distinct_id)
    )${clustered}`,
    `CREATE TABLE flag_hash_key_override (
      project_id BIGINT NOT NULL,
      person_id BIGINT NOT NULL REFERENCES person (id),
      feature_flag_key ${text} NOT NULL,
      hash_key ${text} NOT NULL,
      PRIMARY KEY (person_id, feature_flag_key)
    )${clustered}`,

    // removed: 1 while the groups of a deleted type are being deleted. Until they are gone, its index stays taken, and
    // nothing is stored under it.
    `CREATE TABLE group_type_mapping (
      project_id BIGINT NOT NULL,
      group_type ${text} NOT NULL,
      group_type_index INTEGER NOT NULL CHECK (group_type_index BETWEEN 0 AND 4),
      removed INTEGER NOT NULL DEFAULT 0,
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

    // Requests to erase persons, who made them, and their progress. `removed` is NULL until the rows are counted; `emptied`
    // names the parts that disappear from the event store without being lost. Docs: docs/decisions/0064-erased-persons.md.
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
    // The distinct ids of erased persons, kept until the log has no more records with these ids. `own_uuid`: the person
    // that the id created; '' if that person still exists (it no longer has the id).
    `CREATE TABLE erased_distinct_id (
      project_id BIGINT NOT NULL,
      distinct_id ${text} NOT NULL,
      erasure_id BIGINT NOT NULL,
      own_uuid ${text} NOT NULL,
      PRIMARY KEY (project_id, distinct_id, erasure_id)
    )${clustered}`,
    `CREATE INDEX erased_distinct_id_erasure ON erased_distinct_id (erasure_id)`,
  ]
}

function cohortTables({ clustered, text }: DdlDialect): string[] {
  return [
    `CREATE TABLE cohort (
      id BIGINT PRIMARY KEY,
      project_id BIGINT NOT NULL,
      name ${text} NOT NULL,
      description ${text} NOT NULL,
      is_static INTEGER NOT NULL,
      filters ${text} NOT NULL,
      deleted INTEGER NOT NULL,
      version BIGINT NOT NULL,
      member_count BIGINT,
      counted_at BIGINT,
      created_at BIGINT NOT NULL,
      updated_at BIGINT NOT NULL,
      created_by ${text}
    )`,
    `CREATE INDEX cohort_project ON cohort (project_id, id)`,
    // Ordered by person: an evaluation reads all cohorts of one person, and a merge moves them.
    `CREATE TABLE cohort_person (
      person_id BIGINT NOT NULL REFERENCES person (id),
      cohort_id BIGINT NOT NULL REFERENCES cohort (id),
      PRIMARY KEY (person_id, cohort_id)
    )${clustered}`,
    `CREATE INDEX cohort_person_cohort ON cohort_person (cohort_id, person_id)`,
  ]
}
