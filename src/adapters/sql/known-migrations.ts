// The list of migrations, and which of them a state lacks. Starts ask that on their main thread, which does without Kysely.

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
import type { Migration } from './migrations/migration.ts'
import { SchemaTooNewError } from './schema-too-new-error.ts'

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

/** False: migrations are missing. @throws SchemaTooNewError when there are more than this version has. */
export function isNewestSchema(version: number, known: readonly Migration[] = migrations): boolean {
  const newest = known.at(-1)?.version ?? 0
  if (version > newest)
    throw new SchemaTooNewError(
      `The state was written by a newer Pennon (schema ${version}; this one knows up to ${newest}). Start that version, or restore a backup from before the upgrade.`,
    )
  return version === newest
}
