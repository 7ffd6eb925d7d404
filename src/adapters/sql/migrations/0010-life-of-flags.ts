// What the life of a flag adds to the state: whether the flag is archived, since when it has decided as it does (for
// flags that are there, since their last change), and when it was last called. The calls have
// a table of their own: the worker writes them with every chunk, and a flag's own row may hold a megabyte of filters
// and be locked by somebody who edits it.

import type { Migration } from '#adapters/sql/migrations/migration.ts'

export const lifeOfFlags: Migration = {
  version: 10,
  name: 'life of flags',
  statements: () => [
    `ALTER TABLE feature_flag ADD COLUMN archived INTEGER NOT NULL DEFAULT 0`,
    `ALTER TABLE feature_flag ADD COLUMN conditions_since BIGINT NOT NULL DEFAULT 0`,
    `UPDATE feature_flag SET conditions_since = updated_at`,
    `CREATE TABLE flag_last_call (flag_id BIGINT PRIMARY KEY, called_at BIGINT NOT NULL)`,
  ],
}
