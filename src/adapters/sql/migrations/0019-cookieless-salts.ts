// The salts with which visitors without cookies are hashed, on PostgreSQL; beside a state file they are files.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const cookielessSalts: Migration = {
  version: 19,
  name: 'cookieless salts',
  statements: ({ saltTable }) => saltTable,
}
