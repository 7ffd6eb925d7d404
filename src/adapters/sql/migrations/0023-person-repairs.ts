// Adds requests to rebuild and split persons, the distinct ids that were split, and the distinct ids whose persons were
// erased.

import type { Migration } from './migration.ts'

export const personRepairs: Migration = {
  version: 23,
  name: 'person_repairs',
  statements: ({ autoId, text, clustered }) => [
    // changes_persons: 0 for a preview. The long columns come last.
    `CREATE TABLE person_repair (
      id ${autoId},
      project_id BIGINT NOT NULL,
      changes_persons INTEGER NOT NULL,
      requested_at BIGINT NOT NULL,
      done_at BIGINT,
      requested_by ${text},
      request ${text} NOT NULL,
      report ${text}
    )`,
    `CREATE INDEX person_repair_project ON person_repair (project_id, id)`,
    `CREATE INDEX person_repair_open ON person_repair (project_id) WHERE done_at IS NULL`,
    `CREATE TABLE person_cut (
      project_id BIGINT NOT NULL,
      distinct_id ${text} NOT NULL,
      person_uuid ${text} NOT NULL,
      created_at BIGINT NOT NULL,
      cut_at BIGINT NOT NULL,
      PRIMARY KEY (project_id, distinct_id)
    )${clustered}`,
    // Distinct ids of erased persons whose events were kept. Events that were created at a lower count of erasures do not
    // create the person again.
    `CREATE TABLE erased_past (
      project_id BIGINT NOT NULL,
      distinct_id ${text} NOT NULL,
      erasures BIGINT NOT NULL,
      PRIMARY KEY (project_id, distinct_id)
    )${clustered}`,
  ],
}
