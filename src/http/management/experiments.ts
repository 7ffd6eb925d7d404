// Experiments: list, create, read, change, delete. Results are not served.

import { definedOf } from '#core/defined-of.ts'
import {
  type ExperimentFilter,
  type ExperimentStatus,
  experimentOrders,
  experimentStatuses,
} from '#core/experiments/choose-experiments.ts'
import type { Experiment } from '#core/experiments/experiment.ts'
import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { ExperimentStore } from '#ports/state/experiment-store.ts'
import type { FlagStore } from '#ports/state/flag-store.ts'
import type { ManageExperimentsDeps } from '#services/manage/manage-experiments.ts'
import {
  createExperiment,
  deleteExperiment,
  type ExperimentFields,
  type ExperimentRefusal,
  updateExperiment,
} from '#services/manage/manage-experiments.ts'
import {
  createExperimentSchema,
  decodeExperimentContent,
  encodeExperiment,
  experimentSchema,
  type UpdateExperimentJson,
  updateExperimentSchema,
} from '#wire/management/experiments.ts'
import type { WireError } from '#wire/wire-error.ts'
import { invalidInput, missing } from './kit/answers.ts'
import { readBodyDates } from './kit/body-dates.ts'
import type { EndpointDeps, ManagementRoute } from './kit/endpoint.ts'
import { flagOwnerRoutes } from './kit/flag-owner-routes.ts'
import { idNumber } from './kit/item-routes.ts'
import { asFilter, authorsParam, labelsOfAuthors, mapParam } from './kit/list-filters.ts'
import { flagNotWritable, flagOwnerError, linkedFlagsById, writerOf } from './kit/owned-flags.ts'
import {
  booleanParam,
  choiceParam,
  type QueryParam,
  refusedParam,
  searchParam,
  wholeNumberParam,
  withDefault,
} from './kit/query-params.ts'

type ExperimentsDeps = EndpointDeps &
  ManageExperimentsDeps & { readonly management: ExperimentStore & Pick<FlagStore, 'listFlagsById' | 'listAuthors'> }

/** The experiment as shown; the answer to a PATCH that deletes it says so. */
type ShownExperiment = Experiment & { readonly deleted?: true }

export function experimentsRoutes(deps: ExperimentsDeps): ManagementRoute[] {
  const { management, clock } = deps
  const readFields = (body: UpdateExperimentJson, project: Project): Result<ExperimentFields, WireError> => {
    const dates = readBodyDates(body, project, clock)
    if (!dates.ok) return dates
    const content = decodeExperimentContent(body)
    return ok({
      ...dates.value,
      ...(body.name === undefined ? {} : { name: body.name }),
      ...(content === undefined ? {} : { content }),
      ...(body.archived === undefined ? {} : { archived: body.archived }),
    })
  }
  const destroy = async ({ id, projectId }: Experiment, by: string): Promise<Result<null, WireError>> =>
    orError(await deleteExperiment(deps, projectId, id, by))

  return flagOwnerRoutes(deps, {
    tag: 'experiments',
    scope: 'experiment',
    itemPath: '/experiments/:experimentId',
    missing: noSuchExperiment,
    summaries: {
      list: 'List experiments, newest first.',
      create: 'Create an experiment on the flag of this key; where there is none, it is made.',
      retrieve: 'One experiment.',
      update: 'Change some of an experiment. Its first `start_date` switches the flag on.',
      destroy: 'Delete an experiment. Its flag stays.',
    },
    schemas: { item: experimentSchema, create: createExperimentSchema, update: updateExperimentSchema },
    filters: {
      search: searchParam('Part of a name, in any case.'),
      status: statusParam(),
      archived: withDefault(booleanParam('Only archived experiments, or only the others (unless given).'), false),
      feature_flag_id: asFilter(wholeNumberParam({ description: 'Only experiments on this flag.', minimum: 1 })),
      created_by_id: authorsParam(),
      order: orderParam(),
      event: refusedParam('metrics are kept as they were sent.'),
      prompt_name: refusedParam('there are no prompts here.'),
      tags: refusedParam('experiments have no tags here.'),
      excluded_tags: refusedParam('experiments have no tags here.'),
    },
    find: async (projectId, text): Promise<ShownExperiment | null> => {
      const id = idNumber(text)
      return id === null ? null : management.findExperiment(projectId, id)
    },
    list: async (projectId, { limit, offset, search, status, archived, order, ...query }) => {
      const createdBy = await labelsOfAuthors(management, projectId, 'experiment', query.created_by_id)
      const filters = definedOf({ search, status, createdBy, order, flagId: query.feature_flag_id })
      return management.listExperiments(projectId, { limit, offset, archived, nowMs: clock.nowMs(), ...filters })
    },
    encode: async (caller, projectId, experiments: readonly ShownExperiment[]) => {
      const ids = experiments.map(experiment => experiment.flagId)
      const flagOf = await linkedFlagsById(management, caller, projectId, ids)
      return experiments.map(each => encodeExperiment(each, flagOf(each.flagId), each.deleted))
    },
    create: async ({ caller, project, body }) => {
      const fields = readFields(body, project)
      if (!fields.ok) return fields
      const input = { ...fields.value, name: body.name, flagKey: body.feature_flag_key }
      return orError(await createExperiment(deps, project.id, input, writerOf(caller)))
    },
    update: async ({ caller, project, item, body }) => {
      const fields = readFields(body, project)
      if (!fields.ok) return fields
      const updated = orError(await updateExperiment(deps, project.id, item.id, fields.value, writerOf(caller)))
      if (!updated.ok || body.deleted !== true) return updated
      const deleted = await destroy(item, caller.label)
      return deleted.ok ? ok({ ...updated.value, deleted: true as const }) : deleted
    },
    destroy: ({ caller, item }) => destroy(item, caller.label),
  })
}

/** `all` is no filter, and PostHog's tools also say `complete` for `stopped`. */
function statusParam(): QueryParam<ExperimentStatus | undefined> {
  const words = ['all', 'complete', ...experimentStatuses] as const
  const param = choiceParam(words, 'Running with its flag switched off is `paused`; `complete` is `stopped`.')
  return asFilter(mapParam(param, word => (word === 'all' ? undefined : word === 'complete' ? 'stopped' : word)))
}

function orderParam(): QueryParam<ExperimentFilter['order'] | undefined> {
  const words = experimentOrders.flatMap(order => [order, `-${order}` as const])
  const param = choiceParam(words, 'What to order by, with `-` from the last to the first; newest first unless given.')
  return mapParam(param, word => {
    const by = experimentOrders.find(order => word?.endsWith(order))
    return by === undefined ? undefined : { by, isDescending: word!.startsWith('-') }
  })
}

const noSuchExperiment = missing('There is no experiment with this id here.')
const errors = {
  not_found: noSuchExperiment,
  flag_without_variants: invalidInput('feature_flag_key', 'The flag of this key has fewer than two variants.'),
  flag_archived: invalidInput(
    'start_date',
    'The flag of the experiment is archived. Unarchive it first: PATCH the flag with `archived: false`.',
  ),
  flag_not_writable: flagNotWritable,
}

function orError<T>(result: Result<T, ExperimentRefusal>): Result<T, WireError> {
  return result.ok ? result : err(flagOwnerError(result.error, errors, attrOf))
}

function attrOf(flagPath: string): string {
  if (flagPath === 'key') return 'feature_flag_key'
  return flagPath.replace(/^filters\.multivariate\.variants/, 'parameters.feature_flag_variants')
}
