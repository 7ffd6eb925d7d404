// The whole private API: the routes of all resources in one table.

import { accountsRoutes } from './accounts.ts'
import { activityLogRoutes } from './activity-log.ts'
import { experimentsRoutes } from './experiments.ts'
import { exportEventsRoutes } from './exports/export-events.ts'
import { exportPersonsRoutes } from './exports/export-persons.ts'
import { bulkFlagsRoutes } from './flags/bulk-flags.ts'
import { copyFlagsRoutes } from './flags/copy-flags.ts'
import { earlyAccessFeaturesRoutes } from './flags/early-access-features.ts'
import { explainFlagRoutes } from './flags/explain-flag.ts'
import { featureFlagsRoutes } from './flags/feature-flags.ts'
import { flagActionsRoutes } from './flags/flag-actions.ts'
import { flagReachRoutes } from './flags/flag-reach.ts'
import { flagUsageRoutes } from './flags/flag-usage.ts'
import { flagVersionsRoutes } from './flags/flag-versions.ts'
import { singleFlagChangesRoutes } from './flags/single-flag-changes.ts'
import { testEvaluationRoutes } from './flags/test-evaluation.ts'
import { importJobsRoutes } from './ingestion/import-jobs.ts'
import { ingestionReportsRoutes } from './ingestion/ingestion-reports.ts'
import { rejectedEventsRoutes } from './ingestion/rejected-events.ts'
import { replayMessagesRoutes } from './ingestion/replay-messages.ts'
import type { ManagementDeps } from './kit/deps.ts'
import type { ManagementRoute } from './kit/endpoint.ts'
import { personalKeysRoutes } from './personal-keys.ts'
import { cohortsRoutes } from './persons/cohorts.ts'
import { erasePersonsRoutes } from './persons/erase-persons.ts'
import { groupsRoutes } from './persons/groups.ts'
import { personsRoutes } from './persons/persons.ts'
import { repairPersonsRoutes } from './persons/repair-persons.ts'
import { projectsRoutes } from './projects.ts'
import { agentToolsRoutes } from './queries/agent-tools.ts'
import { definitionsRoutes } from './queries/definitions.ts'
import { eventsRoutes } from './queries/events.ts'
import { liveEventsRoutes } from './queries/live-events.ts'
import { queryRoutes } from './queries/query.ts'
import { sessionRoutes } from './session.ts'
import { surveyStatsRoutes } from './survey-stats.ts'
import { surveysRoutes } from './surveys.ts'
import { usersRoutes } from './users.ts'

export function managementRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...activityLogRoutes(deps),
    ...projectsRoutes(deps),
    ...personalKeysRoutes(deps),
    ...usersRoutes(deps),
    ...sessionRoutes(deps),
    ...accountsRoutes(deps),
    ...featureFlagsRoutes(deps),
    ...bulkFlagsRoutes(deps),
    ...singleFlagChangesRoutes(deps),
    ...flagActionsRoutes(deps),
    ...flagVersionsRoutes(deps),
    ...explainFlagRoutes(deps),
    ...testEvaluationRoutes(deps),
    ...flagReachRoutes(deps),
    ...flagUsageRoutes(deps),
    ...copyFlagsRoutes(deps),
    ...cohortsRoutes(deps),
    ...earlyAccessFeaturesRoutes(deps),
    ...surveyStatsRoutes(deps),
    ...surveysRoutes(deps),
    ...experimentsRoutes(deps),
    ...erasePersonsRoutes(deps),
    ...repairPersonsRoutes(deps),
    ...personsRoutes(deps),
    ...exportPersonsRoutes(deps),
    ...groupsRoutes(deps),
    ...eventsRoutes(deps),
    ...exportEventsRoutes(deps),
    ...importJobsRoutes(deps),
    ...definitionsRoutes(deps),
    ...queryRoutes(deps),
    ...agentToolsRoutes(deps),
    ...rejectedEventsRoutes(deps),
    ...replayMessagesRoutes(deps),
    ...liveEventsRoutes(deps),
    ...ingestionReportsRoutes(deps),
  ]
}
