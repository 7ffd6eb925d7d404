// Feature flags: list, create, read, change, delete. History is in `flag-versions.ts`.

import type { Flag } from '#core/flags/definitions/flag.ts'
import { createFlag, deleteFlag, updateFlag } from '#services/manage/manage-flags.ts'
import {
  createFlagSchema,
  decodeFlag,
  flagSchema,
  updateFlagSchema,
  writtenFlagSchema,
} from '#wire/management/management.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import { answer, noContent } from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type ManagementRoute, projectRoutes } from './kit/endpoint.ts'
import { answerFlagWrite, encodeFlags, flagRoutes, refuseFlag } from './kit/flag-endpoint.ts'
import { countedPage } from './kit/page.ts'
import { booleanParam, pageParams, searchParam } from './kit/query-params.ts'
import { refuseSkipping, skipValidationParam } from './kit/skip-validation.ts'

const tag = 'feature_flags'
/** What belongs into `filters`, or has another name: ignored, it would leave the flag on for everybody. */
const wrongNames = {
  groups: 'filters.groups',
  conditions: 'filters.groups',
  properties: 'filters.groups.0.properties',
  rollout: 'filters.groups.0.rollout_percentage',
  percentage: 'filters.groups.0.rollout_percentage',
  multivariate: 'filters.multivariate',
  variants: 'filters.multivariate.variants',
  payloads: 'filters.payloads',
  enabled: 'active',
}

export function featureFlagsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/feature_flags',
      id: 'feature_flags_list',
      tag,
      summary: 'List flags that are not deleted, newest first.',
      scope: 'feature_flag:read',
      query: {
        ...pageParams(),
        search: searchParam('Part of a key or name, in any case.'),
        active: booleanParam('Only active or only inactive flags.'),
      },
      success: { status: 200, schema: countedPageSchema(flagSchema) },
      handle: async ({ request, caller, project, query }) => {
        const { limit, offset, search, active } = query
        const { count, results } = await deps.management.listFlags(project.id, {
          limit,
          offset,
          ...(search === undefined ? {} : { search }),
          ...(active === undefined ? {} : { active }),
        })
        return answer(200, countedPage(request, query, count, await encodeFlags(deps, caller, results)))
      },
    }),
    ...projectRoutes(deps, {
      method: 'POST',
      path: '/feature_flags',
      id: 'feature_flags_create',
      tag,
      summary: 'Create a flag. It is served by this process when the answer comes.',
      scope: 'feature_flag:write',
      query: { skip_validation: skipValidationParam },
      body: createFlagSchema,
      wrongNames,
      success: { status: 201, schema: writtenFlagSchema },
      handle: async ({ caller, project, query, body }) => {
        const skips = query.skip_validation === true
        const refused = refuseSkipping(skips, caller)
        if (refused !== null) return refused
        const { deleted: _notOnCreate, ...fields } = decodeFlag(body)
        const created = await createFlag(
          deps,
          project.id,
          { ...fields, key: body.key },
          { ...legacyPercentage(body), skipValidation: skips, by: caller.label },
        )
        return answerFlagWrite(deps, caller, 201, created, { withWarnings: skips })
      },
    }),
    ...flagRoutes(deps, {
      method: 'GET',
      path: '',
      id: 'feature_flags_retrieve',
      tag,
      summary: 'One flag by id or key; deleted ones by id.',
      scope: 'feature_flag:read',
      success: { status: 200, schema: flagSchema },
      handle: async ({ caller, flag }) => answer(200, (await encodeFlags(deps, caller, [flag]))[0]),
    }),
    ...flagRoutes(deps, {
      method: 'PATCH',
      path: '',
      id: 'feature_flags_update',
      tag,
      summary: 'Change some of a flag; adds 1 to its version. `deleted: true` deletes it, `false` takes it back.',
      scope: 'feature_flag:write',
      query: { skip_validation: skipValidationParam },
      body: updateFlagSchema,
      wrongNames,
      success: { status: 200, schema: writtenFlagSchema },
      handle: async ({ caller, flag, query, body }) => {
        const skips = query.skip_validation === true
        const refused = refuseSkipping(skips, caller)
        if (refused !== null) return refused
        const updated = await updateFlag(deps, flag, decodeFlag(body), {
          ...legacyPercentage(body),
          ...(typeof body.version === 'number' ? { expectedVersion: body.version } : {}),
          skipValidation: skips,
          by: caller.label,
        })
        return answerFlagWrite(deps, caller, 200, updated, { withWarnings: skips })
      },
    }),
    ...flagRoutes(deps, {
      method: 'DELETE',
      path: '',
      id: 'feature_flags_destroy',
      tag,
      summary: 'Delete a flag: it leaves every answer and frees its key; its history stays.',
      scope: 'feature_flag:write',
      success: { status: 204 },
      handle: async ({ caller, flag }) => {
        const deleted = await deleteFlag(deps, flag, caller.label)
        return deleted.ok ? noContent : refuseFlag(deleted.error)
      },
    }),
  ]
}

function legacyPercentage(body: { rollout_percentage?: unknown }) {
  const { rollout_percentage: percentage } = body
  // The body came through parseJson, so whatever stands there is JSON.
  return percentage === undefined ? {} : { legacyRolloutPercentage: percentage as Flag['filters'] }
}
