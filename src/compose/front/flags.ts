// Composes everything that clients request about flags: values, definitions, changes, and the configuration and scripts of
// pages.

import { openInstalledScripts } from '#adapters/posthog-js/installed-scripts.ts'
import type { Project } from '#core/project.ts'
import { changeStreamRoutes } from '#http/handlers/change-stream.ts'
import { decideRoutes } from '#http/handlers/decide.ts'
import { flagDefinitionsRoutes } from '#http/handlers/flag-definitions.ts'
import { ofrepRoutes } from '#http/handlers/ofrep.ts'
import { remoteConfigRoutes } from '#http/handlers/remote-config.ts'
import { remoteConfigPayloadRoutes } from '#http/handlers/remote-config-payload.ts'
import { staticScriptsRoutes } from '#http/handlers/static-scripts.ts'
import { surveysAndFeaturesRoutes } from '#http/handlers/surveys-and-features.ts'
import type { Route } from '#http/shared/route.ts'
import { createDecideService, type DecideService, type DecideServiceOptions } from '#services/flags/decide.ts'
import type { FlagParts } from './parts.ts'

/** @param over for tests: other limits of an evaluation. */
export function composeFlags(
  parts: FlagParts,
  over: Pick<DecideServiceOptions, 'guard' | 'slices'> = {},
): { decide: DecideService; routes: readonly Route[] } {
  const { clock, geoip, newUuid, trustedProxies, noteStateAway, metrics, logger, definitions, decodeThreads } = parts
  const { management, state, payloadCipher } = parts.stores
  const { flagRequests, eventQuotas } = parts.counters
  const { findProject, findProjectById, findBySecretHash, keyCheck, changes, lookForChanges } = definitions
  const decide = createDecideService({
    findProject,
    subjects: state.subjects,
    hashKeys: { findHashKeys: state.subjects.findHashKeys, addMissingHashKeys: management.addMissingHashKeys },
    salts: parts.salts,
    visitors: state.subjects,
    writesAtOnceMax: state.loginWritesAtOnceMax,
    geoip,
    isOverFlagQuota: flagRequests.isOverQuota,
    countFlagRequest: flagRequests.count,
    metrics,
    logger,
    ...over,
  })
  const isOverRecordingQuota = (project: Project) => eventQuotas.isOverQuota(project, 'recordings')
  const serverKeys = { keyCheck, findProject, findBySecretHash, noteStateAway }
  const scripts = openInstalledScripts()
  const routes = [
    ...decideRoutes({ decide, decodeThreads, trustedProxies, clock, isOverRecordingQuota, newUuid }),
    ...ofrepRoutes({ decide, trustedProxies, clock, changes, findProject, lookForChanges }),
    ...changeStreamRoutes({ findProject, changes }),
    ...flagDefinitionsRoutes({ ...serverKeys, isOverFlagQuota: flagRequests.isOverQuota }),
    ...remoteConfigPayloadRoutes({ ...serverKeys, findProjectById, management, cipher: payloadCipher, logger }),
    ...remoteConfigRoutes({ findProject, scripts, isOverRecordingQuota, clock }),
    ...surveysAndFeaturesRoutes({ findProject }),
    ...staticScriptsRoutes(scripts),
  ]
  return { decide, routes }
}
