// Why a job that is being published or discarded does not get on, and since when: NULL for one that does.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const failingImportJobs: Migration = {
  version: 15,
  name: 'failing import jobs',
  statements: ({ text }) => [
    `ALTER TABLE import_job ADD COLUMN failure_code ${text}`,
    `ALTER TABLE import_job ADD COLUMN failing_since BIGINT`,
  ],
}
