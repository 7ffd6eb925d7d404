// The whole management store over one Kysely connection, for either engine. Engines differ only in how their failures
// become PortErrors.

import type { Kysely } from 'kysely'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { refusedQueries } from './accounting/refused-queries.ts'
import { usageQueries } from './accounting/usage-queries.ts'
import { warningQueries } from './accounting/warning-queries.ts'
import { cohortQueries } from './definitions/cohort-queries.ts'
import { earlyAccessQueries } from './definitions/early-access-queries.ts'
import { experimentQueries } from './definitions/experiment-queries.ts'
import { flagOwnerQueries } from './definitions/flag-owner-queries.ts'
import { flagQueries } from './definitions/flag-queries.ts'
import { surveyQueries } from './definitions/survey-queries.ts'
import { importJobQueries } from './imports/import-job-queries.ts'
import { importWorkQueries } from './imports/import-work-queries.ts'
import { cohortMemberQueries } from './persons/cohort-member-queries.ts'
import { erasureQueries } from './persons/erasure-queries.ts'
import { groupQueries } from './persons/group-queries.ts'
import { personQueries } from './persons/person-queries.ts'
import { cookielessVisitorQueries } from './processing/cookieless-visitor-queries.ts'
import { deferredProjectQueries } from './processing/deferred-project-queries.ts'
import { eventStoreMarkQueries } from './processing/event-store-mark-queries.ts'
import { logBindingQueries } from './processing/log-binding-queries.ts'
import { scheduleOwnerQueries } from './processing/schedule-owner-queries.ts'
import { subjectMirrorQueries } from './processing/subject-mirror-queries.ts'
import { trustedTimeQueries } from './processing/trusted-time-queries.ts'
import { personalKeyQueries } from './projects/personal-key-queries.ts'
import { projectQueries } from './projects/project-queries.ts'
import { secretKeyQueries } from './projects/secret-key-queries.ts'
import { rethrowing } from './tables/rethrowing.ts'
import type { StateSchema } from './tables/schema.ts'
import { withStorableTexts } from './tables/storable-text.ts'

/** @param toPortError makes a PortError of a failure of the engine, and returns anything else as it is. */
export function sqlManagementStore(db: Kysely<StateSchema>, toPortError: (cause: unknown) => unknown): ManagementStore {
  const methods = withStorableTexts<ManagementStore>({
    ...projectQueries(db),
    ...personalKeyQueries(db),
    ...secretKeyQueries(db),
    ...flagQueries(db),
    ...cohortQueries(db),
    ...cohortMemberQueries(db),
    ...earlyAccessQueries(db),
    ...surveyQueries(db),
    ...experimentQueries(db),
    ...flagOwnerQueries(db),
    ...personQueries(db),
    ...erasureQueries(db),
    ...groupQueries(db),
    ...usageQueries(db),
    ...refusedQueries(db),
    ...warningQueries(db),
    ...eventStoreMarkQueries(db),
    ...logBindingQueries(db),
    ...scheduleOwnerQueries(db),
    ...trustedTimeQueries(db),
    ...cookielessVisitorQueries(db),
    ...deferredProjectQueries(db),
    ...subjectMirrorQueries(db),
    ...importJobQueries(db),
    ...importWorkQueries(db),
    close: () => db.destroy(),
  })
  return rethrowing(methods, toPortError)
}
