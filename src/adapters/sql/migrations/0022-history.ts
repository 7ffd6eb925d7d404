// Adds what undoing an import needs to know of it: when its publishing began.

import type { Migration } from './migration.ts'

export const history: Migration = {
  version: 22,
  name: 'history',
  statements: () => ['ALTER TABLE import_job ADD COLUMN publish_began_at BIGINT'],
}
