// The whole private API: the routes of all resources in one table.

import { bulkFlagsRoutes } from './bulk-flags.ts'
import { cohortsRoutes } from './cohorts.ts'
import { copyFlagsRoutes } from './copy-flags.ts'
import { definitionsRoutes } from './definitions.ts'
import { earlyAccessFeaturesRoutes } from './early-access-features.ts'
import { eventsRoutes } from './events.ts'
import { experimentsRoutes } from './experiments.ts'
import { explainFlagRoutes } from './explain-flag.ts'
import { exportEventsRoutes } from './exports/export-events.ts'
import { exportPersonsRoutes } from './exports/export-persons.ts'
import { featureFlagsRoutes } from './feature-flags.ts'
import { flagUsageRoutes } from './flag-usage.ts'
import { flagVersionsRoutes } from './flag-versions.ts'
import { groupsRoutes } from './groups.ts'
import { importJobsRoutes } from './import-jobs.ts'
import { ingestionStatusRoutes } from './ingestion-status.ts'
import type { ManagementDeps } from './kit/deps.ts'
import type { ManagementRoute } from './kit/endpoint.ts'
import { liveEventsRoutes } from './live-events.ts'
import { lostRecordsRoutes } from './lost-records.ts'
import { personalKeysRoutes } from './personal-keys.ts'
import { personsRoutes } from './persons.ts'
import { projectsRoutes } from './projects.ts'
import { queryRoutes } from './query.ts'
import { rejectedEventsRoutes } from './rejected-events.ts'
import { replayMessagesRoutes } from './replay-messages.ts'
import { surveyStatsRoutes } from './survey-stats.ts'
import { surveysRoutes } from './surveys.ts'
import { usageRoutes } from './usage.ts'
import { usersRoutes } from './users.ts'
import { warningsRoutes } from './warnings.ts'

export function managementRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectsRoutes(deps),
    ...personalKeysRoutes(deps),
    ...usersRoutes(deps),
    ...featureFlagsRoutes(deps),
    ...bulkFlagsRoutes(deps),
    ...flagVersionsRoutes(deps),
    ...explainFlagRoutes(deps),
    ...flagUsageRoutes(deps),
    ...copyFlagsRoutes(deps),
    ...cohortsRoutes(deps),
    ...earlyAccessFeaturesRoutes(deps),
    ...surveyStatsRoutes(deps),
    ...surveysRoutes(deps),
    ...experimentsRoutes(deps),
    ...personsRoutes(deps),
    ...exportPersonsRoutes(deps),
    ...groupsRoutes(deps),
    ...eventsRoutes(deps),
    ...exportEventsRoutes(deps),
    ...importJobsRoutes(deps),
    ...definitionsRoutes(deps),
    ...queryRoutes(deps),
    ...rejectedEventsRoutes(deps),
    ...replayMessagesRoutes(deps),
    ...liveEventsRoutes(deps),
    ...ingestionStatusRoutes(deps),
    ...lostRecordsRoutes(deps),
    ...usageRoutes(deps),
    ...warningsRoutes(deps),
  ]
}
