// How many rows were stored for an import job, so that publishing notices lost ones: NULL where nobody has counted. How
// often discarding has begun in a project, so that chunks notice that what they have loaded may be undone.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const rowsOfImportJobs: Migration = {
  version: 14,
  name: 'rows of import jobs',
  statements: () => [
    `ALTER TABLE import_job ADD COLUMN stored_rows BIGINT`,
    `ALTER TABLE project ADD COLUMN import_undos BIGINT NOT NULL DEFAULT 0`,
    `CREATE INDEX import_job_state ON import_job (state, project_id)`,
  ],
}
