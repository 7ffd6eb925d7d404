// An index for reading a person's distinct ids in pieces, and a mark for group types whose deletion is under way.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const boundedLists: Migration = {
  version: 5,
  name: 'bounded lists',
  statements: () => [
    // The ids of one person in order, so that a page of them is read without sorting the rest.
    `CREATE INDEX person_distinct_id_of_person ON person_distinct_id (person_id, distinct_id)`,
    `DROP INDEX person_distinct_id_person`,
    // 1 while the groups of a deleted type are being deleted: its index is taken, and nothing is stored under it.
    `ALTER TABLE group_type_mapping ADD COLUMN removed INTEGER NOT NULL DEFAULT 0`,
  ],
}
