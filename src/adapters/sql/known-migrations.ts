// The list of migrations, and which of them a state lacks. Each start checks this on its main thread, which does not load
// Kysely.

import { inDocs } from '#distribution.ts'
import { isTooOld, UnfitSchemaError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { baseline } from './migrations/0020-baseline.ts'
import { activity } from './migrations/0021-activity.ts'
import { history } from './migrations/0022-history.ts'
import { personRepairs } from './migrations/0023-person-repairs.ts'
import { users } from './migrations/0024-users.ts'
import type { Migration } from './migrations/migration.ts'

/** Append only: a released migration is never edited. */
export const migrations: readonly Migration[] = [baseline, activity, history, personRepairs, users]

/**
 * @param version number of a state's last migration; 0 for a state that has none yet, NaN for a state that does not record
 * it. @returns one line for the operator when this is not the number of a migration, is older than the first migration or
 * is newer than the last.
 */
export function findSchemaProblem(version: number, known: readonly Migration[] = migrations): string | null {
  const [oldest, newest] = [known[0]!.version, known.at(-1)!.version]
  if (!Number.isInteger(version) || version < 0)
    return 'The state is damaged: the version in its table schema_version is missing or invalid. Restore it from a backup.'
  if (version > newest)
    return `The state was written by a newer Pennon (schema ${version}; this version supports up to ${newest}). Start that version, or restore a backup from before the upgrade.`
  if (version > 0 && version < oldest)
    return `The state ${isTooOld}. Export what you want to keep with that version, then start this version with an empty PENNON_DATA, and an empty database if DATABASE_URL is set${inDocs('operating/upgrades.md')}.`
  return null
}

/**
 * @param version as for `findSchemaProblem`.
 * @returns false when migrations are missing.
 * @throws UnfitSchemaError
 */
export function isNewestSchema(version: number, known: readonly Migration[] = migrations): boolean {
  const unfit = findSchemaProblem(version, known)
  if (unfit !== null) throw new UnfitSchemaError(unfit)
  return version === known.at(-1)!.version
}

export interface StateMigration {
  /** Number of the last migration before the start; 0 for a state that is created only now. */
  readonly from: number
  readonly to: number
  readonly durationMs: number
  /** File name of the copy of the previous state, which is next to the state; null without a copy. */
  readonly copy: string | null
}

/** Logs a migration that ran at a start; logs nothing if the state is new or was already up to date. */
export function logStateMigration({ from, to, durationMs, copy }: StateMigration, logger: Logger): void {
  if (from === 0 || from === to) return
  const wayBack = copy === null ? 'a dump or backup from before' : copy
  logger.info(
    { from, to, durationMs, ...(copy !== null && { copy }) },
    `the state was migrated to the schema of this version: an earlier Pennon starts only with ${wayBack}`,
  )
}
