// Whether a feature or an experiment made its flag: one that it took belongs to others, too.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const ownFlags: Migration = {
  version: 7,
  name: 'own flags',
  // For rows that are there already this is not known, so their flags count as taken over, not as made for them.
  statements: () =>
    ['early_access_feature', 'experiment'].map(
      table => `ALTER TABLE ${table} ADD COLUMN flag_is_own INTEGER NOT NULL DEFAULT 0`,
    ),
}
