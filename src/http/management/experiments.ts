// Experiments: list, create, read, change, delete. Results are not served.

import type { Change } from '#core/author.ts'
import {
  type ExperimentFilter,
  type ExperimentStatus,
  experimentOrders,
  experimentStatuses,
} from '#core/experiments/filter-experiments.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { truncateList } from '#core/format-count.ts'
import { getOwnValue, isJsonObject, type JsonObject } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { Project } from '#core/project.ts'
import { type Experiment, experimentResource } from '#core/resources/experiment.ts'
import { err, ok, type Result } from '#core/result.ts'
import {
  createExperiment,
  deleteExperiment,
  type ExperimentFields,
  type ExperimentRefusal,
  updateExperiment,
} from '#services/manage/manage-experiments.ts'
import {
  createExperimentSchema,
  decodeSentFlagFields,
  encodeExperiment,
  experimentSchema,
  removeParameterPayloads,
  type UpdateExperimentJson,
  updateExperimentSchema,
} from '#wire/management/experiments.ts'
import { encodeLinkedFlag, type LinkedFlagJson } from '#wire/management/linked-flag.ts'
import { postHogExperimentFields } from '#wire/management/posthog-fields.ts'
import { isWireError, type WireError } from '#wire/wire-error.ts'
import { buildExperimentActions } from './experiment-actions.ts'
import { createInvalidInputError } from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import type { ManagementRoute } from './kit/endpoint.ts'
import { flagNotWritable, loadLinkedFlags, toFlagOwnerError, toWriter } from './kit/linked-flags.ts'
import { asFilter, authorsParam, convertParam, listChosenAuthors } from './kit/list-filters.ts'
import {
  addDefaultValue,
  booleanParam,
  choiceParam,
  type QueryParam,
  searchParam,
  unsupportedParam,
  wholeNumberParam,
} from './kit/query-params.ts'
import { createNoSuchItemError, readBodyFields, resourceRoutes } from './kit/resource-routes.ts'

/** The experiment as shown; the answer to a PATCH that deletes it says so. */
type ShownExperiment = Experiment & { readonly deleted?: true }

export function experimentsRoutes(deps: ManagementDeps): ManagementRoute[] {
  const { management, clock } = deps
  const readFields = (
    body: UpdateExperimentJson,
    project: Project,
    own: Experiment | null,
    flag: LinkedFlagJson | null,
  ): Result<ExperimentFields, WireError> => {
    const fields = readBodyFields(experimentResource, body, project, clock.nowMs())
    if (!fields.ok) return fields
    const flagConfig = readFlagConfig(body, own, flag)
    if (!flagConfig.ok) return flagConfig
    const { content } = fields.value
    return ok({
      ...fields.value,
      ...flagConfig.value,
      ...(content === undefined ? {} : { content: removeParameterPayloads(content) }),
    })
  }
  const destroy = async ({ id, projectId }: Experiment, change: Change): Promise<Result<null, WireError>> =>
    toWireResult(await deleteExperiment(deps, projectId, id, change))

  return resourceRoutes(deps, {
    actions: buildExperimentActions(deps, toWireResult),
    tag: 'experiments',
    resource: 'experiment',
    summaries: {
      create: 'Create an experiment on the flag with this key; the flag is created if it does not exist.',
      update: 'Update fields of an experiment. Setting `start_date` for the first time enables the flag.',
      destroy: 'Delete an experiment. Its flag is kept.',
    },
    schemas: { item: experimentSchema, create: createExperimentSchema, update: updateExperimentSchema },
    postHogFields: postHogExperimentFields,
    filters: {
      search: searchParam('Substring of the name, case-insensitive.'),
      status: statusParam(),
      archived: addDefaultValue(
        booleanParam('true: only archived experiments. false (default): only unarchived ones.'),
        false,
      ),
      feature_flag_id: asFilter(wholeNumberParam({ description: 'Only experiments on this flag.', minimum: 1 })),
      created_by_id: authorsParam(),
      order: orderParam(),
      event: unsupportedParam('metrics are stored as sent.'),
      prompt_name: unsupportedParam('prompts are not supported.'),
      tags: unsupportedParam('experiments have no tags.'),
      excluded_tags: unsupportedParam('experiments have no tags.'),
    },
    list: async (projectId, { limit, offset, search, status, archived, order, ...query }) => {
      const createdBy = await listChosenAuthors(management, projectId, 'experiment', query.created_by_id)
      const filters = omitUndefined({ search, status, createdBy, order, flagId: query.feature_flag_id })
      return management.listResources('experiment', projectId, {
        limit,
        offset,
        archived,
        nowMs: clock.nowMs(),
        ...filters,
      })
    },
    encode: async (caller, projectId, experiments: readonly ShownExperiment[]) => {
      const ids = experiments.map(experiment => experiment.flagId)
      const flagOf = await loadLinkedFlags(management, caller, projectId, ids)
      return experiments.map(each => encodeExperiment(each, flagOf(each.flagId), each.deleted))
    },
    create: async call => {
      const { project, body } = call
      const fields = readFields(body, project, null, null)
      if (!fields.ok) return fields
      const input = { ...fields.value, name: body.name, flagKey: body.feature_flag_key }
      return toWireResult(await createExperiment(deps, project.id, input, toWriter(call)), body)
    },
    update: async call => {
      const { change, project, item, body } = call
      const readNewFields = (current: Experiment, flag: Flag | null) =>
        (body.feature_flag_key ?? flag?.key) === flag?.key
          ? readFields(body, project, current, encodeLinkedFlag(flag, true))
          : err(keepsItsFlag)
      const updated = toWireResult(
        await updateExperiment(deps, project.id, item.id, readNewFields, toWriter(call)),
        body,
      )
      if (!updated.ok || body.deleted !== true) return updated
      const deleted = await destroy(item, change)
      return deleted.ok ? ok({ ...updated.value, deleted: true as const }) : deleted
    },
    destroy: ({ change, item }) => destroy(item, change),
  })
}

/** `all` means no filter, and PostHog's tools also say `complete` for `stopped`. */
function statusParam(): QueryParam<ExperimentStatus | undefined> {
  const choices = ['all', 'complete', ...experimentStatuses] as const
  const param = choiceParam(choices, '`paused`: running with its flag disabled. `complete` is an alias of `stopped`.')
  return asFilter(convertParam(param, word => (word === 'all' ? undefined : word === 'complete' ? 'stopped' : word)))
}

function orderParam(): QueryParam<ExperimentFilter['order'] | undefined> {
  const choices = experimentOrders.flatMap(order => [order, `-${order}` as const])
  const param = choiceParam(choices, 'Sort field; prefix `-` for descending. Default: newest first.')
  return convertParam(param, word => {
    const by = experimentOrders.find(order => word?.endsWith(order))
    return by === undefined ? undefined : { by, isDescending: word!.startsWith('-') }
  })
}

/**
 * Reads the flag settings of a body. All other flag fields in the body must equal the stored fields; the body of a new
 * experiment may contain the flag of the experiment from which it was copied, under another key.
 */
function readFlagConfig(
  body: UpdateExperimentJson,
  own: Experiment | null,
  flag: LinkedFlagJson | null,
): Result<Pick<ExperimentFields, 'flagConfig' | 'flagActive'>, WireError> {
  const { filters: _filters, ensure_experience_continuity: _continuity, ...others } = body.feature_flag ?? {}
  const isNew = own === null
  if (isNew && others.key !== undefined && others.key !== body.feature_flag_key) return err(twoKeys)
  const changed = isNew
    ? undefined
    : Object.keys(others).find(
        name => !isSameJson(others[name as keyof typeof others], flag?.[name as keyof typeof others]),
      )
  if (changed !== undefined)
    return err(createInvalidInputError(`feature_flag.${changed}`, 'This field belongs to the flag: PATCH the flag.'))
  const parameters = own === null ? null : (getOwnValue(own.content, 'parameters') ?? {})
  const said = decodeSentFlagFields(body, isJsonObject(parameters) ? parameters : null)
  const { filters, ensureExperienceContinuity } = said
  const active = isNew ? omitUndefined({ flagActive: others.active }) : {}
  if (Object.keys(said).length === 0) return ok(active)
  if (ensureExperienceContinuity !== undefined && typeof ensureExperienceContinuity !== 'boolean')
    return err(createInvalidInputError('parameters.ensure_experience_continuity', 'Must be true or false.'))
  const mayChangeRunning = body.update_feature_flag_params === true
  return ok({ ...active, flagConfig: { ...omitUndefined({ filters, ensureExperienceContinuity }), mayChangeRunning } })
}

const twoKeys = createInvalidInputError('feature_flag.key', 'Must equal feature_flag_key, or be omitted.')
const keepsItsFlag = createInvalidInputError(
  'feature_flag_key',
  'The flag of an experiment cannot be changed: create another experiment for another flag.',
)
const errors = {
  not_found: createNoSuchItemError('experiment'),
  flag_without_variants: createInvalidInputError(
    'feature_flag_key',
    'The flag with this key has fewer than two variants.',
  ),
  flag_not_started: createInvalidInputError(
    'feature_flag.active',
    'The flag becomes active when its experiment starts: send start_date, or omit this field.',
  ),
  flag_archived: createInvalidInputError(
    'start_date',
    'The flag of the experiment is archived. Unarchive it first: PATCH the flag with `archived: false`.',
  ),
  flag_taken_with_config: createInvalidInputError(
    'feature_flag',
    'A flag with this key exists, and creating an experiment does not change it: update the flag itself, or omit feature_flag and the variants.',
  ),
  flag_of_running: createInvalidInputError(
    'feature_flag',
    'The experiment is running: send update_feature_flag_params=true to change its flag anyway.',
  ),
  flag_not_writable: flagNotWritable,
}

/** Paths at which older clients send filters of the flag. */
const legacyPaths = [
  ['filters.multivariate.variants', 'feature_flag_variants'],
  ['filters.payloads', 'feature_flag_payloads'],
] as const

/** @param body the body as sent, so that the error names its field. */
function toWireResult<T>(
  result: Result<T, ExperimentRefusal | WireError>,
  body: UpdateExperimentJson = {},
): Result<T, WireError> {
  if (result.ok) return result
  const { error } = result
  if (isWireError(error)) return err(error)
  if (typeof error === 'object' && error.kind === 'in_rules')
    return err(
      createInvalidInputError(
        'deleted',
        `Rules of ${truncateList(error.of).join(', ')} belong to the experiment: remove its experiment_id from them first.`,
      ),
    )
  const toAttr = (flagPath: string) => {
    if (flagPath === 'key') return 'feature_flag_key'
    const parameters = getOwnValue(body as JsonObject, 'parameters')
    for (const [path, parameter] of legacyPaths)
      if (flagPath.startsWith(path) && isJsonObject(parameters) && parameter in parameters)
        return `parameters.${parameter}${flagPath.slice(path.length)}`
    return `feature_flag.${flagPath}`
  }
  return err(toFlagOwnerError(error, errors, toAttr))
}
