// The history of a flag. Every write stores a snapshot of the whole flag.

import type { Flag } from '#core/flags/definitions/flag.ts'
import type { FlagStore, FlagVersion } from '#ports/state/flag-store.ts'
import { restoreFlag } from '#services/manage/manage-flags.ts'
import {
  encodeFlagVersion,
  type FlagActivityJson,
  type FlagDiffJson,
  flagActivitySchema,
  flagDiffSchema,
  flagVersionSchema,
  writtenFlagSchema,
} from '#wire/management/flags/flags.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import { type Answer, answer, createInvalidInputError, createNotFoundError, refusal } from '../kit/answers.ts'
import { refuseSkippedValidation, skipValidationParam } from '../kit/definition-refusals.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type Call, type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerFlagWrite, flagRoutes } from '../kit/flag-endpoint.ts'
import { answerCountedList, encodeObjects, encodeRowsInBulk, type PageRequest } from '../kit/list-answers.ts'
import { pageParams, wholeNumberParam } from '../kit/query-params.ts'
import { buildFlagActivity, buildProjectActivity, diffFlags } from './flag-activity.ts'

const noSuchVersion = createNotFoundError('The flag has no such version; its versions are listed at …/versions/.')

export function flagVersionsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...flagRoutes(deps, {
      route: 'GET /feature_flags/:flagId/versions',
      id: 'feature_flags_versions_list',
      summary: 'List all versions of a flag, newest first.',
      scope: 'feature_flag:read',
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(flagVersionSchema) },
      handle: call => {
        const { item: flag, query } = call
        return answerCountedList(
          call,
          query,
          slice => deps.management.listFlagVersions(flag.projectId, flag.id, slice),
          encodeObjects(version => encodeFlagVersion(version, flag.hasEncryptedPayloads)),
        )
      },
    }),
    ...flagRoutes(deps, {
      route: 'GET /feature_flags/:flagId/versions/:version',
      id: 'feature_flags_versions_retrieve',
      summary: 'Get the flag as of one version.',
      scope: 'feature_flag:read',
      success: { status: 200, schema: flagVersionSchema },
      handle: async ({ item: flag, params }) => {
        const version = await findVersion(deps, flag, params.version!)
        return version === null
          ? refusal(noSuchVersion)
          : answer(200, encodeFlagVersion(version, flag.hasEncryptedPayloads))
      },
    }),
    ...flagRoutes(deps, {
      route: 'GET /feature_flags/:flagId/versions/:version/diff/:otherVersion',
      id: 'feature_flags_versions_diff',
      summary: 'Compare two versions of a flag.',
      scope: 'feature_flag:read',
      success: { status: 200, schema: flagDiffSchema },
      handle: async ({ item: flag, params }) => {
        const from = await findVersion(deps, flag, params.version!)
        const to = await findVersion(deps, flag, params.otherVersion!)
        if (from === null || to === null) return refusal(noSuchVersion)
        const diff: FlagDiffJson = { from: from.version, to: to.version, changes: diffFlags(from.flag, to.flag, flag) }
        return answer(200, diff)
      },
    }),
    ...flagRoutes(deps, {
      route: 'POST /feature_flags/:flagId/versions/:version/restore',
      id: 'feature_flags_versions_restore',
      summary: 'Restore an earlier version as the newest one. Everything it refers to must still exist.',
      scope: 'feature_flag:write',
      query: { skip_validation: skipValidationParam },
      success: { status: 200, schema: writtenFlagSchema },
      handle: async ({ caller, change, item: flag, params, query }) => {
        const version = parseVersionNumber(params.version!)
        if (version === null) return refusal(noSuchVersion)
        const skips = query.skip_validation === true
        const refused = refuseSkippedValidation(skips, caller)
        if (refused !== null) return refused
        const restored = await restoreFlag(deps, flag, version, { skipValidation: skips, change })
        return answerFlagWrite(deps, caller, 200, restored, { withWarnings: skips })
      },
    }),
    ...projectRoutes(deps, {
      route: 'GET /feature_flags/activity',
      id: 'feature_flags_activity_all',
      summary: 'List changes of all flags with their authors, newest first.',
      scope: 'feature_flag:read',
      query: activityParams,
      success: { status: 200, schema: countedPageSchema(flagActivitySchema) },
      handle: async call =>
        answerActivity(
          call,
          slice => deps.management.listProjectFlagVersions(call.project.id, slice),
          versions => buildProjectActivity(deps, call.project.id, versions),
        ),
    }),
    ...flagRoutes(deps, {
      route: 'GET /feature_flags/:flagId/activity',
      id: 'feature_flags_activity',
      summary: 'List changes of the flag with their authors, newest first.',
      scope: 'feature_flag:read',
      query: activityParams,
      success: { status: 200, schema: countedPageSchema(flagActivitySchema) },
      handle: async call =>
        answerActivity(
          call,
          slice => deps.management.listFlagVersions(call.project.id, call.item.id, slice),
          versions => buildFlagActivity(deps, call.item, versions),
        ),
    }),
  ]
}

/** Lower than the limit for lists of versions: comparing versions costs more than showing them. */
const activityLimitMax = 1_000

/** PostHog's tools page through activity by `page`, PostHog's own screens follow `next`. */
const activityParams = {
  ...pageParams(10, activityLimitMax),
  page: wholeNumberParam({
    description: 'Page number from 1, with `limit` entries each; instead of `offset`.',
    minimum: 1,
    maximum: 1_000_000,
  }),
}

async function answerActivity(
  call: Call<typeof activityParams, unknown>,
  read: (slice: PageRequest) => ReturnType<FlagStore['listFlagVersions']>,
  encode: (versions: readonly FlagVersion[]) => Promise<FlagActivityJson[]>,
): Promise<Answer> {
  const { limit, offset, page } = call.query
  if (page !== undefined && offset > 0)
    return refusal(createInvalidInputError('page', 'Send either page or offset, not both.'))
  const start = page === undefined ? offset : (page - 1) * limit
  // The pages after a short one would have other numbers.
  const mayBeShort = page === undefined
  return answerCountedList(call, { limit, offset: start, mayBeShort }, read, encodeRowsInBulk(encode))
}

async function findVersion(
  deps: { readonly management: Pick<FlagStore, 'findFlagVersion'> },
  flag: Flag,
  text: string,
): Promise<FlagVersion | null> {
  const version = parseVersionNumber(text)
  return version === null ? null : deps.management.findFlagVersion(flag.projectId, flag.id, version)
}

function parseVersionNumber(text: string): number | null {
  return /^\d{1,9}$/.test(text) ? Number(text) : null
}
