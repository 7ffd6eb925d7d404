// The activity log: who changed what. Every change writes its entry in its own transaction. A caller sees only the entries
// of items that it may read.

import { type Activity, type ActivityKind, activityKinds } from '#core/activity.ts'
import { findNearestName } from '#core/nearest-name.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err, ok } from '#core/result.ts'
import { type ActivityJson, activitySchema, activityScopes, encodeActivity } from '#wire/management/activity.ts'
import { uncountedPageSchema } from '#wire/management/shapes.ts'
import { diffVersion } from './flags/flag-activity.ts'
import { createInvalidInputError, createPermissionDeniedError, refusal } from './kit/answers.ts'
import { type Caller, hasScope, isLimitedToProjects } from './kit/authenticate.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type Call, instanceRoutes, type ManagementRoute, projectRoutes } from './kit/endpoint.ts'
import { answerCursorList, encodeRowsInBulk } from './kit/list-answers.ts'
import { asFilter, authorsParam, commaListParam } from './kit/list-filters.ts'
import { limitParam, type QueryParam, type QueryValues, textParam, wholeNumberParam } from './kit/query-params.ts'

/** A search that takes longer ends its page of results early, even if the page is empty. */
const searchMsMax = 1_000
const filters = {
  // The same limits as in a flag's own activity, which compares the flag's versions at each request.
  limit: limitParam(100, 1_000),
  cursor: wholeNumberParam({
    description: 'From `next` of the previous page. Pages of a long search may be short or empty: follow `next`.',
    minimum: 1,
  }),
  scopes: scopesParam(),
  item_id: asFilter(textParam('Only changes of the item with this id.')),
  user: authorsParam(),
}

/** The names of the kinds of changed items. A scope of keys (such as `feature_flag`) is easily mistaken for such a name. */
function scopesParam(): QueryParam<readonly string[] | undefined> {
  const known = Object.values(activityScopes)
  const names = commaListParam(`What was changed, comma-separated: ${known.join(', ')}.`)
  return {
    ...names,
    read(text, name) {
      const read = names.read(text, name)
      const wrong = read.ok ? read.value?.find(one => !known.includes(one)) : undefined
      if (wrong === undefined) return read
      const meant = findNearestName(wrong.replaceAll('_', '').slice(0, 40), known)
      return err(
        createInvalidInputError(
          name,
          `Unknown scope '${wrong.slice(0, 80)}'. Did you mean ${meant}? Known: ${known.join(', ')}.`,
        ),
      )
    },
  }
}

/** The scope that a caller needs to see the entries of a kind, where it differs from the scope with the kind's name. */
const readScopes: Readonly<Partial<Record<ActivityKind, string>>> = {
  personal_api_key: '*',
  group_type: 'group:read',
  rejected_event: 'query:read',
  user: '*',
}

export function activityLogRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'GET /activity_log',
      id: 'activity_log_list',
      scope: 'activity_log:read',
      summary: 'List changes in a project with their authors, newest first: those of objects that the key may read.',
      query: filters,
      success: { status: 200, schema: uncountedPageSchema(activitySchema) },
      handle: call => answerActivity(deps, call, call.project.id),
    }),
    ...instanceRoutes(deps, {
      route: 'GET /api/activity_log',
      id: 'activity_log_list_all',
      scope: '*',
      summary: 'List changes in all projects and of personal API keys with their authors, newest first.',
      query: filters,
      success: { status: 200, schema: uncountedPageSchema(activitySchema) },
      handle: async call => (isLimitedToProjects(call.caller) ? refusal(limitedKey) : answerActivity(deps, call, null)),
    }),
  ]
}

const limitedKey = createPermissionDeniedError(
  'A key that is limited to some projects sees the activity of each of them.',
)

async function answerActivity(deps: ManagementDeps, call: Call<typeof filters, unknown>, projectId: number | null) {
  const { limit, cursor } = call.query
  const chosen = { projectId, ...readFilters(call) }
  const startMs = deps.monotonicNowMs()
  return answerCursorList<Activity, number | undefined>(
    call,
    { cursor, limit },
    async (belowId, limit) => {
      const query = { ...chosen, limit, ...omitUndefined({ belowId }) }
      const { results, nextBelowId } = await deps.management.listActivity(query)
      return ok({ rows: results, next: nextBelowId, endsPage: deps.monotonicNowMs() - startMs >= searchMsMax })
    },
    { rows: encodeRowsInBulk(entries => encodeEntries(deps, entries)), cursor: String },
  )
}

function readFilters({ caller, query }: { readonly caller: Caller; readonly query: QueryValues<typeof filters> }) {
  const { scopes, item_id: itemId, user: by } = query
  const kinds = activityKinds.filter(
    kind => hasScope(caller, readScopes[kind] ?? `${kind}:read`) && (scopes?.includes(activityScopes[kind]) ?? true),
  )
  return { kinds, ...omitUndefined({ itemId, by }) }
}

async function encodeEntries({ management }: ManagementDeps, entries: readonly Activity[]): Promise<ActivityJson[]> {
  const shown: ActivityJson[] = []
  for (const entry of entries) {
    const { kind, version } = entry
    const ofFlag = kind === 'feature_flag' && version !== undefined
    shown.push(encodeActivity(entry, ofFlag ? await diffVersion(management, entry, version) : undefined))
  }
  return shown
}
