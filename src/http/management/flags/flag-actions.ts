// Flag actions for which PostHog's tools have separate requests: look up keys, change the tags of many flags, and
// evaluate all flags for a person. Source: PostHog's feature flag actions.

import Type from 'typebox'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { EvaluationTrace } from '#core/flags/evaluation/evaluation-trace.ts'
import { type FlagOutcome, flagValueOf } from '#core/flags/evaluation/flag-outcome.ts'
import { selectFlags } from '#core/flags/evaluation/select-flags.ts'
import { isJsonObject, type JsonObject } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import { updateFlag } from '#services/manage/manage-flags.ts'
import { reasonCodeOf } from '#wire/flags/flag-texts.ts'
import { bulkFlagsMax, bulkFlagsSchema } from '#wire/management/flags/bulk-flags.ts'
import { flagSchema } from '#wire/management/flags/flags.ts'
import { jsonObjectSchema, nullable } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import { answer, createInvalidError, createInvalidInputError, refusal, stateUnavailable } from '../kit/answers.ts'
import type { ManagementDeps } from '../kit/deps.ts'
import { type ManagementRoute, parseIdNumber, projectRoutes } from '../kit/endpoint.ts'
import { encodeFlags, flagRoutes } from '../kit/flag-endpoint.ts'
import { answerWholeList, encodeRowsInBulk } from '../kit/list-answers.ts'
import { parseJsonOrUndefined } from '../kit/property-filters.ts'
import { optionalParam, type QueryParam, requiredParam, textListParam, textParam } from '../kit/query-params.ts'
import { readSubjectRequest } from './explain-flag.ts'

/** How many flags are in memory at a time; each may take a megabyte. */
const shownTogether = 20

const tagsSchema = Type.Object({
  ...bulkFlagsSchema.properties,
  action: Type.Union(
    ['add', 'remove', 'set'].map(action => Type.Literal(action)),
    { description: '`set` replaces all tags.' },
  ),
  tags: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 100 }),
})
const taggedSchema = Type.Object({
  updated: Type.Array(Type.Object({ id: Type.Integer(), tags: Type.Array(Type.String()) })),
  skipped: Type.Array(Type.Object({ id: Type.Union([Type.Integer(), Type.String()]), reason: Type.String() })),
})
const keysSchema = Type.Object({
  keys: jsonObjectSchema('Keys by id; unknown ids are omitted.'),
  warning: Type.Optional(Type.String()),
})
const dependentSchema = Type.Array(Type.Object({ id: Type.Integer(), key: Type.String(), name: Type.String() }))
const valueSchema = Type.Union([Type.Boolean(), Type.String()])
const reasonsSchema = Type.Record(
  Type.String(),
  Type.Object({
    value: valueSchema,
    evaluation: Type.Object({ reason: Type.String(), condition_index: nullable(Type.Integer()) }),
  }),
)
const myFlagsSchema = Type.Array(Type.Object({ feature_flag: flagSchema, value: valueSchema }))

const subjectQuery = {
  flag_keys: flagKeysParam(),
  groups: groupsParam(),
}

export function flagActionsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...flagRoutes(deps, {
      route: 'GET /feature_flags/:flagId/dependent_flags',
      id: 'feature_flags_dependent_flags',
      scope: 'feature_flag:read',
      summary: 'List the flags that depend on this one, including inactive ones.',
      success: { status: 200, schema: dependentSchema },
      handle: async ({ project, item: flag }) => {
        const { flags } = await deps.management.findLinks(project.id)
        const ids = flags.filter(({ flagIds }) => flagIds.includes(flag.id)).map(({ id }) => id)
        const dependent = await deps.management.listFlagsById(project.id, ids)
        return answer(
          200,
          dependent.map(({ id, key, name }) => ({ id, key, name })).sort((a, b) => a.id - b.id),
        )
      },
    }),
    ...projectRoutes(deps, {
      route: 'POST /feature_flags/bulk_keys',
      id: 'feature_flags_bulk_keys',
      scope: 'feature_flag:read',
      summary: `Get the keys of up to ${bulkFlagsMax} flags by id, including deleted ones.`,
      body: bulkFlagsSchema,
      success: { status: 200, schema: keysSchema },
      handle: async ({ project, body }) => {
        const numbers = body.ids.map(id => parseIdNumber(String(id)))
        const flags = await deps.management.listFlagsById(
          project.id,
          numbers.filter(id => id !== null),
        )
        const keys = Object.fromEntries(flags.map(({ id, key }) => [String(id), key]))
        const unreadable = body.ids.filter((_id, index) => numbers[index] === null)
        const warning = `Not flag ids: ${unreadable.join(', ')}.`
        return answer(200, { keys, ...(unreadable.length > 0 && { warning }) })
      },
    }),
    ...projectRoutes(deps, {
      route: 'POST /feature_flags/bulk_update_tags',
      id: 'feature_flags_bulk_update_tags',
      scope: 'feature_flag:write',
      summary: 'Add, remove or replace tags of flags by id.',
      body: tagsSchema,
      success: { status: 200, schema: taggedSchema },
      handle: async ({ change, project, body: { ids, action, tags } }) => {
        const updated: { id: number; tags: readonly string[] }[] = []
        const skipped: { id: number | string; reason: string }[] = []
        for (const sent of new Set(ids)) {
          const id = parseIdNumber(String(sent))
          const [flag] = id === null ? [] : await deps.management.listFlagsById(project.id, [id])
          if (flag === undefined || flag.deleted) {
            skipped.push({ id: sent, reason: 'The project has no flag with this id.' })
            continue
          }
          const written = await updateFlag(
            deps,
            flag,
            { tags: applyTagAction(flag.tags, action, tags) },
            { skipValidation: false, change },
          )
          if (written.ok) updated.push({ id: flag.id, tags: written.value.flag.tags })
          else skipped.push({ id: flag.id, reason: `The tags could not be saved: ${written.error.kind}.` })
        }
        return answer(200, { updated, skipped })
      },
    }),
    ...projectRoutes(deps, {
      route: 'GET /feature_flags/evaluation_reasons',
      id: 'feature_flags_evaluation_reasons',
      scope: 'feature_flag:read',
      // Keys of PostHog's clients have only this one.
      scopeOfPersons: 'feature_flag:read person:read',
      summary: 'Evaluate all flags for a person, with reasons. Nothing is stored or counted.',
      query: { ...subjectQuery, distinct_id: requiredParam(textParam('Distinct id to evaluate flags for.')) },
      success: { status: 200, schema: reasonsSchema },
      handle: async ({ project, query }) => {
        const evaluated = await evaluateFlags(deps, project, query.distinct_id, query)
        if (!evaluated.ok) return refusal(evaluated.error)
        const reasons = [...evaluated.value].map(([key, outcome]) => {
          const { reason, conditionIndex } = outcome
          return [
            key,
            {
              value: flagValueOf(outcome) ?? false,
              evaluation: { reason: reasonCodeOf(reason), condition_index: conditionIndex },
            },
          ]
        })
        return answer(200, Object.fromEntries(reasons))
      },
    }),
    ...projectRoutes(deps, {
      route: 'GET /feature_flags/my_flags',
      id: 'feature_flags_my_flags',
      scope: 'feature_flag:read',
      summary: 'List flags with their value for the calling key: the person whose distinct id is the id of the key.',
      query: subjectQuery,
      success: { status: 200, schema: myFlagsSchema },
      handle: async ({ caller, project, query, signal }) => {
        const evaluated = await evaluateFlags(deps, project, caller.id, query)
        if (!evaluated.ok) return refusal(evaluated.error)
        const encodeFlagRows = async (keys: readonly string[]) => {
          const found: Flag[] = []
          for (const key of keys) {
            const flag = await deps.management.findFlagByKey(project.id, key)
            if (flag !== null) found.push(flag)
          }
          const shown = await encodeFlags(deps, caller, found)
          return shown.map(flag => ({
            feature_flag: flag,
            value: flagValueOf(evaluated.value.get(flag.key)!) ?? false,
          }))
        }
        return answerWholeList([...evaluated.value.keys()], encodeRowsInBulk(encodeFlagRows), {
          ...{ signal, sliceRows: shownTogether },
          tooLarge: sizeMax =>
            createInvalidInputError(
              'flag_keys',
              `The flags exceed the response limit of ${sizeMax}: request some of them by key.`,
            ),
        })
      },
    }),
  ]
}

function applyTagAction(now: readonly string[], action: string, tags: readonly string[]): string[] {
  if (action === 'remove') return now.filter(tag => !tags.includes(tag))
  return [...new Set(action === 'add' ? [...now, ...tags] : tags)]
}

/** Evaluates the served flags, which are the active flags. Returns outcomes by key. */
async function evaluateFlags(
  deps: ManagementDeps,
  project: { readonly id: number; readonly apiToken: string },
  distinctId: string,
  {
    groups,
    flag_keys: flagKeys,
  }: { readonly groups: JsonObject | undefined; readonly flag_keys: readonly string[] | undefined },
): Promise<Result<ReadonlyMap<string, FlagOutcome>, WireError>> {
  const served = deps.servedProject(project.id)
  if (served === null) return err(stateUnavailable)
  const request = readSubjectRequest({ distinct_id: distinctId, ...(groups && { groups }) }, project.apiToken)
  if (!request.ok) return request
  const selected = selectFlags(served, { ...request.value.selection, flagKeys: flagKeys ?? null })
  const readOnly = { ...request.value, detailedAnalysis: true }
  const trace = new EvaluationTrace()
  const { evaluation } = await deps.decide.traceEvaluation(served, selected, readOnly, deps.clock.nowMs(), trace)
  const outcomes = new Map<string, FlagOutcome>()
  for (const [position, prepared] of evaluation.outcomes.entries()) {
    const flag = served.flags[position]
    const isAsked = flagKeys === undefined || (flag !== undefined && flagKeys.includes(flag.key))
    if (flag !== undefined && prepared !== undefined && isAsked) outcomes.set(flag.key, prepared)
  }
  return ok(outcomes)
}

/** Flag keys: one per occurrence of the parameter, or a JSON list. */
function flagKeysParam(): QueryParam<readonly string[] | undefined> {
  const param = textListParam('Only these flags: repeated keys, or a JSON list of keys.', 500)
  return {
    ...param,
    readAll(texts, name) {
      const listed = texts.length === 1 && texts[0]!.startsWith('[') ? parseJsonOrUndefined(texts[0]!) : undefined
      const isList = Array.isArray(listed) && listed.every(key => typeof key === 'string')
      return param.readAll!(isList ? (listed as string[]) : texts, name)
    },
  }
}

function groupsParam(): QueryParam<JsonObject | undefined> {
  const schema = Type.String({ description: 'JSON object of group keys by group type: {"company": "acme"}.' })
  return optionalParam(schema, (text, name) => {
    const groups = parseJsonOrUndefined(text)
    return isJsonObject(groups)
      ? ok(groups)
      : err(createInvalidError(name, 'Must be a JSON object such as {"company": "acme"}.'))
  })
}
