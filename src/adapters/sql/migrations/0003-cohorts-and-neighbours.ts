// Cohorts with the members of static ones, secret keys of projects, client settings of projects, and the neighbours of
// flags: early access features, surveys, experiments.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const cohortsAndNeighbours: Migration = {
  version: 3,
  name: 'cohorts and neighbours',
  statements: ({ clustered, text }) => [
    `INSERT INTO id_sequence (name, last_id) VALUES ('cohort', 0), ('experiment', 0)`,

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

    `ALTER TABLE project ADD COLUMN client_settings ${text} NOT NULL DEFAULT '{}'`,
    // role: primary, or the backup that stays valid for a while after a rotation.
    `CREATE TABLE secret_api_key (
      project_id BIGINT NOT NULL REFERENCES project (id),
      role ${text} NOT NULL,
      secret_hash ${text} NOT NULL UNIQUE,
      masked ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      PRIMARY KEY (project_id, role)
    )`,

    `CREATE TABLE early_access_feature (
      id ${text} PRIMARY KEY,
      project_id BIGINT NOT NULL,
      feature_flag_id BIGINT,
      name ${text} NOT NULL,
      description ${text} NOT NULL,
      stage ${text} NOT NULL,
      documentation_url ${text} NOT NULL,
      payload ${text} NOT NULL,
      created_at BIGINT NOT NULL
    )`,
    `CREATE INDEX early_access_feature_project ON early_access_feature (project_id, created_at)`,

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

    // content: metrics, parameters, description and the like.
    `CREATE TABLE experiment (
      id BIGINT PRIMARY KEY,
      project_id BIGINT NOT NULL,
      name ${text} NOT NULL,
      feature_flag_id BIGINT NOT NULL,
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
  ],
}
