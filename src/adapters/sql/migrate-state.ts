// The list of migrations, and how it is applied: forward only, each in one transaction with the row that records it. A
// state that a newer Pennon has migrated is refused and not changed.

import { type Kysely, sql } from 'kysely'
import { ground } from './migrations/0001-ground.ts'
import { followedLog } from './migrations/0002-followed-log.ts'
import { cohortsAndNeighbours } from './migrations/0003-cohorts-and-neighbours.ts'
import { ingestion } from './migrations/0004-ingestion.ts'
import { boundedLists } from './migrations/0005-bounded-lists.ts'
import { eventStoreMark } from './migrations/0006-event-store-mark.ts'
import { ownFlags } from './migrations/0007-own-flags.ts'
import { scheduleOwner } from './migrations/0008-schedule-owner.ts'
import { deferredProjects } from './migrations/0009-deferred-projects.ts'
import { lifeOfFlags } from './migrations/0010-life-of-flags.ts'
import { subjectMirror } from './migrations/0011-subject-mirror.ts'
import { importJobs } from './migrations/0012-import-jobs.ts'
import { publicImportJobIds } from './migrations/0013-public-import-job-ids.ts'
import { rowsOfImportJobs } from './migrations/0014-rows-of-import-jobs.ts'
import { failingImportJobs } from './migrations/0015-failing-import-jobs.ts'
import { trustedTime } from './migrations/0016-trusted-time.ts'
import { personErasures } from './migrations/0017-person-erasures.ts'
import { cookielessVisitors } from './migrations/0018-cookieless-visitors.ts'
import { cookielessSalts } from './migrations/0019-cookieless-salts.ts'
import type { DdlWords, Migration } from './migrations/migration.ts'
import { SchemaTooNewError } from './schema-too-new-error.ts'
import type { StateSchema } from './tables/schema.ts'

/** Append only: a released migration is never edited. */
export const migrations: readonly Migration[] = [
  ground,
  followedLog,
  cohortsAndNeighbours,
  ingestion,
  boundedLists,
  eventStoreMark,
  ownFlags,
  scheduleOwner,
  deferredProjects,
  lifeOfFlags,
  subjectMirror,
  importJobs,
  publicImportJobIds,
  rowsOfImportJobs,
  failingImportJobs,
  trustedTime,
  personErasures,
  cookielessVisitors,
  cookielessSalts,
]

/**
 * Brings the state up to the newest known schema. Running it again changes nothing. Two processes may run it at once,
 * because each step is decided inside its own transaction.
 * @returns the number of the last migration before and afterwards; 0 for a state that is made only now.
 * @throws SchemaTooNewError; then nothing was changed.
 * Source: ours.
 */
export async function migrateState(
  db: Kysely<StateSchema>,
  options: { words: DdlWords; migrations?: readonly Migration[] },
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
  options: { words: DdlWords },
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
    for (const statement of next.statements(options.words)) await sql.raw(statement).execute(trx)
    await trx.insertInto('schema_version').values({ version: next.version, name: next.name }).execute()
    return { from: current, to: next.version }
  })
}

/** False: migrations are missing. @throws SchemaTooNewError when there are more than this version has. */
export function isNewestSchema(version: number, known: readonly Migration[] = migrations): boolean {
  const newest = known.at(-1)?.version ?? 0
  if (version > newest)
    throw new SchemaTooNewError(
      `The state was written by a newer Pennon (schema ${version}; this one knows up to ${newest}). Start that version, or restore a backup from before the upgrade.`,
    )
  return version === newest
}
