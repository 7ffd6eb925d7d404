// Feature flags: list, create, read, change, delete. History is in `flag-versions.ts`.

import Type from 'typebox'
import { statusOfFlag } from '#core/flags/definitions/flag-status.ts'
import { flagTypes } from '#core/flags/definitions/flag-traits.ts'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import {
  getOwnValue,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  readJsonNumber,
  toCompactJson,
} from '#core/json.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { FlagSearch } from '#ports/state/flag-store.ts'
import { createFlag, deleteFlag, updateFlag } from '#services/manage/manage-flags.ts'
import {
  createFlagSchema,
  decodeFlag,
  flagSchema,
  flagStatusSchema,
  updateFlagSchema,
  writtenFlagSchema,
} from '#wire/management/flags/flags.ts'
import { postHogFlagFields } from '#wire/management/posthog-fields.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import { answer, createInvalidInputError, createRequiredError, noContent, refusal } from '../kit/answers.ts'
import { refuseSkippedValidation, skipValidationParam } from '../kit/definition-refusals.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, projectRoutes } from '../kit/endpoint.ts'
import { answerFlagWrite, createFlagRefusalAnswer, encodeFlags, flagRoutes } from '../kit/flag-endpoint.ts'
import { answerCountedList, encodeRowsInBulk, type PageRequest } from '../kit/list-answers.ts'
import { asFilter, authorsParam, listChosenAuthors, namesParam } from '../kit/list-filters.ts'
import {
  addDefaultValue,
  booleanParam,
  choiceParam,
  pageParams,
  type QueryParam,
  type QueryValues,
  searchParam,
  textParam,
} from '../kit/query-params.ts'

const activeText = 'Only active or only inactive flags. `STALE`: only active flags with that status.'
const isActive = booleanParam(activeText)
const activeParam: QueryParam<boolean | 'STALE' | undefined> = {
  ...isActive,
  schema: Type.Union([Type.Boolean(), Type.Literal('STALE')], { description: activeText }),
  read: (text, name) => (text?.toUpperCase() === 'STALE' ? ok('STALE' as const) : isActive.read(text, name)),
}
const archivedText = 'true: only archived flags. false (default): only unarchived flags. `all`: both.'
const isArchived = booleanParam(archivedText)
const archivedParam = addDefaultValue<boolean | 'all'>(
  {
    ...isArchived,
    schema: Type.Union([Type.Boolean(), Type.Literal('all')], { description: archivedText }),
    read: (text, name) => (text?.toLowerCase() === 'all' ? ok('all' as const) : isArchived.read(text, name)),
  },
  false,
)
const hasContexts = booleanParam('Only flags with evaluation contexts, or only those without.')
/** PostHog's filters, combined with AND; `has_evaluation_tags` is an older name. */
const flagFilters = {
  search: searchParam('Substring of the key or name, case-insensitive.'),
  key: textParam('The flag key, case-insensitive.'),
  active: activeParam,
  archived: archivedParam,
  type: asFilter(
    choiceParam(
      flagTypes,
      '`boolean`: without variants. `multivariant`: with variants. `experiment`: with an experiment. `remote_config`.',
    ),
  ),
  created_by_id: authorsParam(),
  evaluation_runtime: asFilter(choiceParam(['all', 'client', 'server'], 'Evaluation runtime of the flag.')),
  has_evaluation_contexts: hasContexts,
  has_evaluation_tags: { ...hasContexts, schema: { ...hasContexts.schema, deprecated: true } },
  tags: namesParam('JSON list of tags: only flags with at least one of them.'),
  excluded_tags: namesParam('JSON list of tags: only flags with none of them.'),
  excluded_properties: namesParam('JSON list of flag keys to exclude.'),
  eligible_for_experiment: booleanParam('true: only flags with 2 to 20 variants. false: only other flags.'),
}

async function readFlagTraits(deps: ManagementDeps, projectId: number, query: QueryValues<typeof flagFilters>) {
  return omitUndefined({
    type: query.type,
    createdBy: await listChosenAuthors(deps.management, projectId, 'feature_flag', query.created_by_id),
    evaluationRuntime: query.evaluation_runtime,
    hasEvaluationContexts: query.has_evaluation_contexts ?? query.has_evaluation_tags,
    tags: query.tags,
    excludedTags: query.excluded_tags,
    excludedKeys: query.excluded_properties,
    isEligibleForExperiment: query.eligible_for_experiment,
  })
}

/** Searches only once, however many slices of the result are read afterwards. */
async function createSearchPager({ management }: ManagementDeps, projectId: number, search: FlagSearch) {
  const ids = await management.searchFlags(projectId, search)
  return async ({ limit, offset }: PageRequest) => ({
    count: ids.length,
    results: await management.listFittingFlags(projectId, ids.slice(offset, offset + limit)),
  })
}

/** Fields that belong in `filters` or have another name. If they were ignored, the flag would be on for everyone. */
export const wrongFlagNames = {
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
      route: 'GET /feature_flags',
      id: 'feature_flags_list',
      summary: 'List flags, newest first. Deleted flags are excluded, archived ones by default.',
      scope: 'feature_flag:read',
      query: {
        ...pageParams(),
        ...flagFilters,
      },
      success: { status: 200, schema: countedPageSchema(flagSchema) },
      handle: async call => {
        const { caller, project, query } = call
        const { search, key, active, archived } = query
        const isStale = active === 'STALE'
        const chosen = { archived, ...omitUndefined({ search, key, active: isStale ? true : active }) }
        const traits = await readFlagTraits(deps, project.id, query)
        const isSearch = isStale || Object.keys(traits).length > 0
        return answerCountedList(
          call,
          query,
          isSearch
            ? await createSearchPager(deps, project.id, {
                ...chosen,
                traits,
                ...(isStale && { staleAtMs: deps.clock.nowMs() }),
              })
            : slice => deps.management.listFlags(project.id, { ...chosen, ...slice }),
          encodeRowsInBulk(flags => encodeFlags(deps, caller, flags)),
        )
      },
    }),
    ...projectRoutes(deps, {
      route: 'POST /feature_flags',
      id: 'feature_flags_create',
      summary: 'Create a flag. This process serves it as soon as it responds.',
      scope: 'feature_flag:write',
      query: { skip_validation: skipValidationParam },
      body: createFlagSchema,
      postHogFields: postHogFlagFields,
      wrongNames: wrongFlagNames,
      uniqueKeysIn,
      success: { status: 201, schema: writtenFlagSchema },
      handle: async ({ caller, change, project, query, body }) => {
        const skips = query.skip_validation === true
        const refused = refuseSkippedValidation(skips, caller)
        if (refused !== null) return refused
        const percentage = readLegacyPercentage(body, body.filters ?? {})
        if (!percentage.ok) return refusal(percentage.error)
        const { deleted: _notOnCreate, ...fields } = decodeFlag(body)
        const created = await createFlag(
          deps,
          project.id,
          { ...fields, key: body.key },
          { ...percentage.value, skipValidation: skips, change },
        )
        return answerFlagWrite(deps, caller, 201, created, { withWarnings: skips })
      },
    }),
    ...flagRoutes(deps, {
      route: 'GET /feature_flags/:flagId',
      id: 'feature_flags_retrieve',
      summary: 'Get one flag by id or key. Deleted flags are found by id only.',
      scope: 'feature_flag:read',
      success: { status: 200, schema: flagSchema },
      handle: async ({ caller, item: flag }) => answer(200, (await encodeFlags(deps, caller, [flag]))[0]),
    }),
    ...flagRoutes(deps, {
      route: 'GET /feature_flags/:flagId/status',
      id: 'feature_flags_status',
      summary: 'Get whether the flag is in use, and the reason for this status.',
      scope: 'feature_flag:read',
      success: { status: 200, schema: flagStatusSchema },
      handle: async ({ item: flag }) => {
        const [call] = await deps.management.listLastCalls(flag.projectId, [flag.id])
        return answer(200, statusOfFlag(flag, call?.calledAtMs ?? null, deps.clock.nowMs()))
      },
    }),
    ...flagRoutes(deps, {
      route: 'PATCH /feature_flags/:flagId',
      id: 'feature_flags_update',
      summary: 'Update fields of a flag; increments its version. `deleted: true` deletes it, `false` restores it.',
      scope: 'feature_flag:write',
      query: { skip_validation: skipValidationParam },
      body: updateFlagSchema,
      postHogFields: postHogFlagFields,
      wrongNames: wrongFlagNames,
      uniqueKeysIn,
      success: { status: 200, schema: writtenFlagSchema },
      handle: async ({ caller, change, item: flag, query, body }) => {
        const skips = query.skip_validation === true
        const refused = refuseSkippedValidation(skips, caller)
        if (refused !== null) return refused
        const percentage = readLegacyPercentage(body, body.filters ?? flag.filters)
        if (!percentage.ok) return refusal(percentage.error)
        const expectedVersion = readJsonNumber(body.version ?? null)
        const replacesRules = body.filters !== undefined && readConfigVersion(flag.filters) === 2
        if (replacesRules && expectedVersion === undefined && !skips) return refusal(createRequiredError('version'))
        const updated = await updateFlag(deps, flag, decodeFlag(body), {
          ...percentage.value,
          ...(expectedVersion !== undefined && { expectedVersion }),
          skipValidation: skips,
          change,
        })
        return answerFlagWrite(deps, caller, 200, updated, { withWarnings: skips })
      },
    }),
    ...flagRoutes(deps, {
      route: 'DELETE /feature_flags/:flagId',
      id: 'feature_flags_destroy',
      summary: 'Delete a flag: it is no longer served, and its key can be reused. Its history is kept.',
      scope: 'feature_flag:write',
      success: { status: 204 },
      handle: async ({ change, item: flag }) => {
        const deleted = await deleteFlag(deps, flag, change)
        return deleted.ok ? noContent : createFlagRefusalAnswer(deleted.error)
      },
    }),
  ]
}

/**
 * The field in which duplicate keys are refused, since they would hide a part of a rule. Null for version 1 documents,
 * which have always been accepted: of duplicate keys, the last one counts.
 */
function uniqueKeysIn({ filters }: JsonObject): string | null {
  return isJsonObject(filters) && readConfigVersion(filters) === 2 ? 'filters' : null
}

const percentageOfRules = createInvalidInputError(
  'rollout_percentage',
  'A version 2 flag has no rollout percentage: each rule has one.',
)

/**
 * The flag-wide percentage, for filters without condition sets. With condition sets the percentage would have no
 * effect, so it must equal the value that PostHog shows: the percentage of the first set, or null.
 * @param filters the flag's filters after the write.
 */
export function readLegacyPercentage(
  body: { readonly rollout_percentage?: unknown },
  filters: JsonObject,
): Result<{ legacyRolloutPercentage?: JsonValue }, WireError> {
  // The body came from parseJson, so the value is JSON.
  const percentage = body.rollout_percentage as JsonValue | undefined
  if (percentage === undefined) return ok({})
  if (readConfigVersion(filters) === 2) return percentage === null ? ok({}) : err(percentageOfRules)
  const groups = getOwnValue(filters, 'groups')
  if (groups === undefined) return ok({ legacyRolloutPercentage: percentage })
  const first = Array.isArray(groups) ? groups[0] : undefined
  const current = isJsonObject(first) ? (getOwnValue(first, 'rollout_percentage') ?? null) : null
  if (percentage === null || toCompactJson(percentage) === toCompactJson(current)) return ok({})
  return err(
    createInvalidInputError(
      'rollout_percentage',
      'Set the percentage in a condition set: filters.groups.0.rollout_percentage.',
    ),
  )
}
