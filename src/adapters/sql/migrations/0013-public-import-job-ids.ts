// Ids of import jobs that nobody guesses. Jobs that are there keep theirs, so that an importer goes on after an upgrade.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const publicImportJobIds: Migration = {
  version: 13,
  name: 'public import job ids',
  statements: () => [
    `ALTER TABLE import_job ADD COLUMN public_id BIGINT`,
    `UPDATE import_job SET public_id = id WHERE implicit_day IS NULL`,
    `CREATE UNIQUE INDEX import_job_public ON import_job (public_id) WHERE public_id IS NOT NULL`,
  ],
}
