// Feature flags: list, create, read, change, delete. History is in `flag-versions.ts`.

import type { Flag } from '#core/flags/flag.ts'
import { createFlag, deleteFlag, type FlagRefusal, updateFlag, type WrittenFlag } from '#services/manage-flags.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import {
  createFlagSchema,
  decodeFlag,
  encodeFlag,
  flagSchema,
  updateFlagSchema,
  writtenFlagSchema,
} from '#wire/management.ts'
import { wireError } from '#wire/wire-error.ts'
import { type Answer, answer, missing, noContent, notFoundHere, permissionDenied, refusal } from './answers.ts'
import { holdsScope } from './authenticate.ts'
import type { ManagementDeps } from './deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from './endpoint.ts'
import { countedPage } from './page.ts'
import { booleanParam, pageParams, type QuerySpec, textParam } from './query-params.ts'

const tag = 'feature_flags'
const skipValidation = booleanParam(
  'Store the definition whatever it is, and answer `warnings`. Needs a key with all scopes.',
)

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
        search: textParam('Part of a key or name, in any case.'),
        active: booleanParam('Only active or only inactive flags.'),
      },
      success: { status: 200, schema: countedPageSchema(flagSchema) },
      handle: async ({ request, project, query }) => {
        const { limit, offset, search, active } = query
        const { count, results } = await deps.management.listFlags(project.id, {
          limit,
          offset,
          ...(search === undefined ? {} : { search }),
          ...(active === undefined ? {} : { active }),
        })
        return answer(200, countedPage(request, query, count, results.map(encodeFlag)))
      },
    }),
    ...projectRoutes(deps, {
      method: 'POST',
      path: '/feature_flags',
      id: 'feature_flags_create',
      tag,
      summary: 'Create a flag. It is served by this process when the answer comes.',
      scope: 'feature_flag:write',
      query: { skip_validation: skipValidation },
      body: createFlagSchema,
      success: { status: 201, schema: writtenFlagSchema },
      handle: async ({ caller, project, query, body }) => {
        const skips = query.skip_validation === true
        if (skips && !holdsScope(caller, '*')) return refuseSkipping()
        const { deleted: _notOnCreate, ...fields } = decodeFlag(body)
        const created = await createFlag(
          deps,
          project.id,
          { ...fields, key: body.key },
          { ...legacyPercentage(body), skipValidation: skips, by: caller.label },
        )
        return created.ok ? answerWritten(201, created.value, skips) : refuseFlag(created.error)
      },
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: '/feature_flags/:flagId',
      id: 'feature_flags_retrieve',
      tag,
      summary: 'One flag by id or key; deleted ones by id.',
      scope: 'feature_flag:read',
      success: { status: 200, schema: flagSchema },
      handle: call => withFlag(deps, call, async flag => answer(200, encodeFlag(flag))),
    }),
    ...projectRoutes(deps, {
      method: 'PATCH',
      path: '/feature_flags/:flagId',
      id: 'feature_flags_update',
      tag,
      summary: 'Change some of a flag; adds 1 to its version. `deleted: true` deletes it, `false` takes it back.',
      scope: 'feature_flag:write',
      query: { skip_validation: skipValidation },
      body: updateFlagSchema,
      success: { status: 200, schema: writtenFlagSchema },
      handle: call =>
        withFlag(deps, call, async flag => {
          const { caller, query, body } = call
          const skips = query.skip_validation === true
          if (skips && !holdsScope(caller, '*')) return refuseSkipping()
          const updated = await updateFlag(deps, flag, decodeFlag(body), {
            ...legacyPercentage(body),
            ...(typeof body.version === 'number' ? { expectedVersion: body.version } : {}),
            skipValidation: skips,
            by: caller.label,
          })
          return updated.ok ? answerWritten(200, updated.value, skips) : refuseFlag(updated.error)
        }),
    }),
    ...projectRoutes(deps, {
      method: 'DELETE',
      path: '/feature_flags/:flagId',
      id: 'feature_flags_destroy',
      tag,
      summary: 'Delete a flag: it leaves every answer and frees its key; its history stays.',
      scope: 'feature_flag:write',
      success: { status: 204 },
      handle: call =>
        withFlag(deps, call, async flag => {
          const deleted = await deleteFlag(deps, flag, call.caller.label)
          return deleted.ok ? noContent : refuseFlag(deleted.error)
        }),
    }),
  ]
}

/** Finds the flag that `:flagId` names, an id or a key, in the project of the call; 404 when there is none. */
export async function withFlag<Q extends QuerySpec, B>(
  deps: Pick<ManagementDeps, 'management'>,
  call: ProjectCall<Q, B>,
  handle: (flag: Flag) => Promise<Answer>,
): Promise<Answer> {
  const flag = await deps.management.findFlag(call.project.id, call.params.flagId!)
  return flag === null ? refusal(noSuchFlag) : handle(flag)
}

const noSuchFlag = missing('There is no flag with this id or key here. A deleted flag is found by its id.')

/** Source: ours; `attr` is the path of the first mistake, and its sentence is `detail`. */
export function refuseFlag(error: FlagRefusal): Answer {
  switch (error.kind) {
    case 'not_found':
      return refusal(notFoundHere)
    case 'key_taken':
      return refusal(wireError(400, 'unique', 'There is already a feature flag with this key.', 'key'))
    case 'invalid': {
      const first = error.issues[0]!
      return refusal(wireError(400, first.code, first.message, first.path))
    }
    case 'stale_version': {
      const current = error.current.version
      const detail = `The flag is at version ${current}; this change was made to version ${error.sentVersion}. Read it again and repeat the change.`
      const extra = { current_version: current, sent_version: error.sentVersion }
      return refusal(wireError(409, 'conflict', detail, 'version'), extra)
    }
    default:
      return error satisfies never
  }
}

export function answerWritten(status: number, written: WrittenFlag, withWarnings: boolean): Answer {
  const flag = encodeFlag(written.flag)
  if (!withWarnings) return answer(status, flag)
  const warnings = written.warnings.map(({ path, code, message }) => ({ attr: path, code, detail: message }))
  return answer(status, { ...flag, warnings })
}

function refuseSkipping(): Answer {
  return refusal(permissionDenied("skip_validation needs a personal API key with all scopes ('*')."))
}

function legacyPercentage(body: { rollout_percentage?: unknown }) {
  const { rollout_percentage: percentage } = body
  // The body came through parseJson, so whatever stands there is JSON.
  return percentage === undefined ? {} : { legacyRolloutPercentage: percentage as Flag['filters'] }
}
