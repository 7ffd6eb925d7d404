// Whether a feature or an experiment created its flag: a flag that it took over has other uses, too.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const ownFlags: Migration = {
  version: 7,
  name: 'own flags',
  // This is unknown for existing rows, so their flags count as taken over.
  statements: () =>
    ['early_access_feature', 'experiment'].map(
      table => `ALTER TABLE ${table} ADD COLUMN flag_is_own INTEGER NOT NULL DEFAULT 0`,
    ),
}
