// How many rows were stored for an import job, so that publishing notices lost ones. NULL where nobody has counted.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const rowsOfImportJobs: Migration = {
  version: 14,
  name: 'rows of import jobs',
  statements: () => [`ALTER TABLE import_job ADD COLUMN stored_rows BIGINT`],
}
