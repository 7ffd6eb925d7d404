// Applies the list of migrations: forward only, each in one transaction together with the row that records it. A state that
// a newer Pennon has migrated is refused and not changed.

import { type Kysely, sql } from 'kysely'
import { isNewestSchema, migrations } from './known-migrations.ts'
import type { DdlDialect, Migration } from './migrations/migration.ts'
import type { StateSchema } from './tables/schema.ts'

/**
 * Brings the state up to the newest known schema. Running it again changes nothing. Two processes may run it at once,
 * because each step is decided inside its own transaction.
 * @returns the number of the last migration before and afterwards; 0 for a state that is created only now. @throws
 * UnfitSchemaError; then nothing was changed. Source: ours.
 */
export async function migrateState(
  db: Kysely<StateSchema>,
  options: { dialect: DdlDialect; migrations?: readonly Migration[] },
): Promise<{ from: number; to: number }> {
  const known = options.migrations ?? migrations
  const first = await applyNext(db, known, options)
  let last = first
  while (last.to > last.from) last = await applyNext(db, known, options)
  return { from: first.from, to: last.to }
}

async function applyNext(
  db: Kysely<StateSchema>,
  known: readonly Migration[],
  options: { dialect: DdlDialect },
): Promise<{ from: number; to: number }> {
  return db.transaction().execute(async trx => {
    await sql`CREATE TABLE IF NOT EXISTS schema_version (
      version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
    )`.execute(trx)
    const row = await trx
      .selectFrom('schema_version')
      .select(eb => eb.fn.max('version').as('version'))
      .executeTakeFirst()
    const current = Number(row?.version ?? 0)
    if (isNewestSchema(current, known)) return { from: current, to: current }
    const next = known.find(migration => migration.version > current)!
    for (const statement of next.statements(options.dialect)) await sql.raw(statement).execute(trx)
    await trx.insertInto('schema_version').values({ version: next.version, name: next.name }).execute()
    return { from: current, to: next.version }
  })
}
