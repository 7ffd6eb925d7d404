// Actions that PostHog's tools POST on an experiment: start, end, pause, archive, ship and copy it. Each is an ordinary
// write of the experiment and its flag. Source: PostHog's experiment actions.

import Type, { type Static } from 'typebox'
import { type ExperimentStatus, statusOfExperiment } from '#core/experiments/filter-experiments.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import {
  assignAllToVariant,
  prependEveryoneCondition,
  variantsOf,
} from '#core/flags/definitions/single-flag-changes.ts'
import { flagKeyLengthMax } from '#core/flags/definitions/validate-flag.ts'
import { getOwnValue, isJsonObject, type JsonObject } from '#core/json.ts'
import type { Experiment } from '#core/resources/experiment.ts'
import { err, ok, type Result } from '#core/result.ts'
import {
  createExperiment,
  type ExperimentFields,
  type ExperimentRefusal,
  updateExperiment,
} from '#services/manage/manage-experiments.ts'
import { nullable } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import { createInvalidInputError } from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import type { ItemCall } from './kit/endpoint.ts'
import { toWriter } from './kit/linked-flags.ts'
import type { QuerySpec } from './kit/query-params.ts'
import { defineItemAction } from './kit/resource-routes.ts'

type Call<B = unknown> = ItemCall<Experiment, QuerySpec, B>
type OrError = <T>(result: Result<T, ExperimentRefusal | WireError>) => Result<T, WireError>
type FieldsOf = (current: Experiment, flag: Flag | null) => Result<ExperimentFields, WireError>

const conclusionFields = {
  conclusion: Type.Optional(nullable(Type.String({ maxLength: 100 }))),
  conclusion_comment: Type.Optional(nullable(Type.String({ maxLength: 10_000 }))),
}
/** PostHog opens a pull request with these fields; they have no effect here. */
const cleanupFields = {
  open_cleanup_pr: Type.Optional(Type.Literal(false, { description: 'Pull requests are not supported.' })),
  repository: Type.Optional(Type.Null()),
}
const endSchema = Type.Object({ ...conclusionFields, ...cleanupFields })
const archiveSchema = Type.Object({
  disable_feature_flag: Type.Optional(Type.Boolean({ description: 'Also disable the flag.' })),
})
const shipSchema = Type.Object({
  ...conclusionFields,
  ...cleanupFields,
  variant_key: Type.String({ minLength: 1, maxLength: 400 }),
  release_to_everyone: Type.Optional(
    Type.Boolean({
      description:
        'true: insert a condition set for all users before the others. false: keep the condition sets unchanged.',
    }),
  ),
})
const duplicateSchema = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: 400, pattern: '\\S' })),
  feature_flag_key: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: flagKeyLengthMax,
      description: 'Default: the flag of the original experiment.',
    }),
  ),
})

/** @param orError turns the refusal of a write into an error answer. */
export function buildExperimentActions(deps: ManagementDeps, orError: OrError) {
  const { management } = deps
  const findFlag = async ({ project, item }: Call): Promise<Flag | null> => {
    const [flag] = await management.listFlagsById(project.id, [item.flagId])
    return flag === undefined || flag.deleted ? null : flag
  }
  const updateFields = async (call: Call, fieldsOf: FieldsOf) =>
    orError(await updateExperiment(deps, call.project.id, call.item.id, fieldsOf, toWriter(call)))
  /** Writes the fields from `fieldsOf` if the experiment has one of these statuses. */
  const updateIfInStatus = (call: Call, statuses: readonly ExperimentStatus[], fieldsOf: FieldsOf) =>
    updateFields(call, (current, linked) => {
      const flag = linked?.deleted === true ? null : linked
      const status = statusOfExperiment(current, flag?.active === true)
      return statuses.includes(status) ? fieldsOf(current, flag) : err(wrongStatusError(status, statuses))
    })
  const setFlagActive = (call: Call, statuses: readonly ExperimentStatus[], flagActive: boolean) =>
    updateIfInStatus(call, statuses, (_current, flag) => (flag === null ? err(noFlag) : ok({ flagActive })))

  return [
    defineItemAction({
      name: 'launch',
      summary: 'Start a draft now and enable its flag.',
      run: (call: Call) => updateIfInStatus(call, ['draft'], () => ok({ startDateMs: call.change.atMs })),
    }),
    defineItemAction({
      name: 'end',
      summary: 'End an experiment now. The flag is not changed.',
      body: endSchema,
      run: (call: Call<Static<typeof endSchema>>) =>
        updateIfInStatus(call, ['running', 'paused'], () =>
          ok({ endDateMs: call.change.atMs, content: toConclusion(call.body) }),
        ),
    }),
    defineItemAction({
      name: 'pause',
      summary: 'Pause a running experiment: disable its flag.',
      run: (call: Call) => setFlagActive(call, ['running'], false),
    }),
    defineItemAction({
      name: 'resume',
      summary: 'Resume a paused experiment: enable its flag.',
      run: (call: Call) => setFlagActive(call, ['paused'], true),
    }),
    defineItemAction({
      name: 'archive',
      summary: 'Archive an ended experiment.',
      body: archiveSchema,
      run: (call: Call<Static<typeof archiveSchema>>) =>
        updateIfInStatus(call, ['stopped'], () =>
          ok({ archived: true, ...(call.body.disable_feature_flag === true && { flagActive: false }) }),
        ),
    }),
    defineItemAction({
      name: 'unarchive',
      summary: 'Unarchive an experiment.',
      run: (call: Call) => updateFields(call, () => ok({ archived: false })),
    }),
    defineItemAction({
      name: 'reset',
      summary: 'Reset an experiment to a draft. The flag is not changed.',
      run: (call: Call) =>
        updateIfInStatus(call, ['running', 'paused', 'stopped'], () =>
          ok({
            ...{ startDateMs: null, endDateMs: null, archived: false },
            content: { conclusion: null, conclusion_comment: null },
          }),
        ),
    }),
    defineItemAction({
      name: 'ship_variant',
      summary: 'Serve one variant to every user the flag matches, or to all users, and end the experiment.',
      body: shipSchema,
      run: (call: Call<Static<typeof shipSchema>>) =>
        updateIfInStatus(call, ['running', 'paused', 'stopped'], (current, flag) => {
          if (flag === null) return err(noFlag)
          const filters = toShippedFilters(flag.filters, call.body.variant_key, call.body.release_to_everyone === true)
          if (filters === null) return err(noSuchVariant)
          return ok({
            flagConfig: { filters, mayChangeRunning: true },
            content: toConclusion(call.body),
            ...(current.endDateMs === null && { endDateMs: call.change.atMs }),
          })
        }),
    }),
    defineItemAction({
      name: 'duplicate',
      summary: 'Duplicate the experiment as a draft, on the same flag or on another flag with the same variants.',
      body: duplicateSchema,
      status: 201,
      run: async (call: Call<Static<typeof duplicateSchema>>) => {
        const { project, item, body } = call
        const flag = await findFlag(call)
        const flagKey = body.feature_flag_key ?? flag?.key
        if (flagKey === undefined) return err(noFlag)
        const isNew = (await management.findFlagByKey(project.id, flagKey)) === null
        const multivariate = flag === null ? undefined : getOwnValue(flag.filters, 'multivariate')
        const { conclusion: _ended, conclusion_comment: _said, ...content } = item.content
        const input = {
          ...{ name: body.name ?? `${item.name.slice(0, 390)} (Copy)`, flagKey, content },
          ...(isNew && multivariate != null && { flagConfig: { filters: { multivariate }, mayChangeRunning: false } }),
        }
        return orError(await createExperiment(deps, project.id, input, toWriter(call)))
      },
    }),
  ]
}

function toConclusion(body: { conclusion?: string | null; conclusion_comment?: string | null }): JsonObject {
  return {
    ...(body.conclusion !== undefined && { conclusion: body.conclusion }),
    ...(body.conclusion_comment !== undefined && { conclusion_comment: body.conclusion_comment }),
  }
}

/** The filters that serve one variant to everyone; null when the variant does not exist. */
function toShippedFilters(filters: JsonObject, variantKey: string, isForEveryone: boolean): JsonObject | null {
  if (!variantsOf(filters).some(variant => isJsonObject(variant) && getOwnValue(variant, 'key') === variantKey))
    return null
  const { multivariate, groups } = assignAllToVariant(
    isForEveryone ? prependEveryoneCondition(filters) : filters,
    variantKey,
  )
  return { multivariate: multivariate!, ...(isForEveryone && { groups: groups! }) }
}

const noFlag = createInvalidInputError('feature_flag', 'The flag of the experiment is deleted.')
const noSuchVariant = createInvalidInputError('variant_key', 'The flag of the experiment has no variant with this key.')

function wrongStatusError(status: ExperimentStatus, statuses: readonly ExperimentStatus[]): WireError {
  return createInvalidInputError(
    'status',
    `The experiment is ${status}; this action needs one that is ${statuses.join(' or ')}.`,
  )
}
