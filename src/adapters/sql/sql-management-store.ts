// The whole management store over one Kysely connection, for either engine. Engines differ only in how their failures
// become PortErrors.

import type { Kysely } from 'kysely'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { createAccountingQueries } from './accounting/accounting-queries.ts'
import { createActivityQueries } from './accounting/activity-queries.ts'
import { createCohortQueries } from './definitions/cohort-queries.ts'
import { createFlagOwnerQueries } from './definitions/flag-owner-queries.ts'
import { createFlagQueries } from './definitions/flag-queries.ts'
import { createResourceQueries } from './definitions/resource-queries.ts'
import { createImportJobQueries } from './imports/import-job-queries.ts'
import { createImportWorkQueries } from './imports/import-work-queries.ts'
import { createCohortMemberQueries } from './persons/cohort-member-queries.ts'
import { createErasureQueries } from './persons/erasure-queries.ts'
import { createGroupQueries } from './persons/group-queries.ts'
import { createPersonQueries } from './persons/person-queries.ts'
import { createRepairQueries } from './persons/repair-queries.ts'
import { createSubjectMirrorQueries } from './processing/subject-mirror-queries.ts'
import { createWorkerStateQueries } from './processing/worker-state-queries.ts'
import { createProjectQueries } from './projects/project-queries.ts'
import type { StateSchema } from './tables/schema.ts'
import { makeTextArgumentsStorable, translateErrors } from './tables/wrap-methods.ts'
import { createSessionQueries } from './users/session-queries.ts'
import { createUserQueries } from './users/user-queries.ts'

/** @param toPortError converts a failure of the engine to a PortError, and returns any other error unchanged. */
export function createSqlManagementStore(
  db: Kysely<StateSchema>,
  toPortError: (cause: unknown) => unknown,
): ManagementStore {
  const methods = makeTextArgumentsStorable<ManagementStore>({
    ...createActivityQueries(db),
    ...createProjectQueries(db),
    ...createUserQueries(db),
    ...createSessionQueries(db),
    ...createFlagQueries(db),
    ...createCohortQueries(db),
    ...createCohortMemberQueries(db),
    ...createResourceQueries(db),
    ...createFlagOwnerQueries(db),
    ...createPersonQueries(db),
    ...createErasureQueries(db),
    ...createRepairQueries(db),
    ...createGroupQueries(db),
    ...createAccountingQueries(db),
    ...createWorkerStateQueries(db),
    ...createSubjectMirrorQueries(db),
    ...createImportJobQueries(db),
    ...createImportWorkQueries(db),
    close: () => db.destroy(),
  })
  return translateErrors(methods, toPortError)
}
