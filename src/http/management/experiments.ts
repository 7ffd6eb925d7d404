// Experiments: list, create, read, change, delete. There are no results.

import type { Experiment } from '#core/experiments/experiment.ts'
import type { Project } from '#core/project.ts'
import { ok, type Result } from '#core/result.ts'
import type { PersonalKey } from '#ports/management-store.ts'
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
import { countedPageSchema } from '#wire/management/shapes.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Answer, answer, invalidInput, missing, noContent, refusal } from './kit/answers.ts'
import { readBodyDates } from './kit/body-dates.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type ManagementRoute, projectRoutes } from './kit/endpoint.ts'
import { flagKeepsChanging, flagNotWritable, invalidFlagError, linkedFlagsById, writerOf } from './kit/owned-flags.ts'
import { countedPage } from './kit/page.ts'
import { pageParams } from './kit/query-params.ts'

const tag = 'experiments'
const read = 'experiment:read'
const write = 'experiment:write'
const path = '/experiments'
const itemPath = `${path}/:experimentId`

export function experimentsRoutes(deps: ManagementDeps): ManagementRoute[] {
  const { management, clock } = deps
  const encodeAll = async (
    caller: PersonalKey,
    projectId: number,
    experiments: readonly Experiment[],
    deleted = false,
  ) => {
    const ids = experiments.map(experiment => experiment.flagId)
    const find = await linkedFlagsById(management, caller, projectId, ids)
    return experiments.map(experiment => encodeExperiment(experiment, find(experiment.flagId), deleted))
  }
  const encode = async (caller: PersonalKey, experiment: Experiment, deleted = false) =>
    (await encodeAll(caller, experiment.projectId, [experiment], deleted))[0]
  const find = async (project: Project, params: Readonly<Record<string, string>>) => {
    const id = params.experimentId!
    return /^\d{1,15}$/.test(id) ? management.findExperiment(project.id, Number(id)) : null
  }
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

  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path,
      id: 'experiments_list',
      tag,
      summary: 'List experiments, newest first.',
      scope: read,
      query: pageParams(),
      success: { status: 200, schema: countedPageSchema(experimentSchema) },
      handle: async ({ request, caller, project, query }) => {
        const { count, results } = await management.listExperiments(project.id, query)
        return answer(200, countedPage(request, query, count, await encodeAll(caller, project.id, results)))
      },
    }),
    ...projectRoutes(deps, {
      method: 'POST',
      path,
      id: 'experiments_create',
      tag,
      summary: 'Create an experiment on the flag of this key; where there is none, it is made.',
      scope: write,
      body: createExperimentSchema,
      success: { status: 201, schema: experimentSchema },
      handle: async ({ caller, project, body }) => {
        const fields = readFields(body, project)
        if (!fields.ok) return refusal(fields.error)
        const input = { ...fields.value, name: body.name, flagKey: body.feature_flag_key }
        const created = await createExperiment(deps, project.id, input, writerOf(caller))
        return created.ok ? answer(201, await encode(caller, created.value)) : refuse(created.error)
      },
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: itemPath,
      id: 'experiments_retrieve',
      tag,
      summary: 'One experiment.',
      scope: read,
      success: { status: 200, schema: experimentSchema },
      handle: async ({ caller, project, params }) => {
        const experiment = await find(project, params)
        return experiment === null ? refusal(noSuchExperiment) : answer(200, await encode(caller, experiment))
      },
    }),
    ...projectRoutes(deps, {
      method: 'PATCH',
      path: itemPath,
      id: 'experiments_partial_update',
      tag,
      summary: 'Change some of an experiment. Its first `start_date` switches the flag on.',
      scope: write,
      body: updateExperimentSchema,
      success: { status: 200, schema: experimentSchema },
      handle: async ({ caller, project, params, body }) => {
        const fields = readFields(body, project)
        if (!fields.ok) return refusal(fields.error)
        const found = await find(project, params)
        if (found === null) return refusal(noSuchExperiment)
        const updated = await updateExperiment(deps, project.id, found.id, fields.value, writerOf(caller))
        if (!updated.ok) return refuse(updated.error)
        if (body.deleted !== true) return answer(200, await encode(caller, updated.value))
        const deleted = await deleteExperiment(deps, project.id, found.id, caller.label)
        return deleted.ok ? answer(200, await encode(caller, updated.value, true)) : refuse(deleted.error)
      },
    }),
    ...projectRoutes(deps, {
      method: 'DELETE',
      path: itemPath,
      id: 'experiments_destroy',
      tag,
      summary: 'Delete an experiment. Its flag stays.',
      scope: write,
      success: { status: 204 },
      handle: async ({ caller, project, params }) => {
        const found = await find(project, params)
        if (found === null) return refusal(noSuchExperiment)
        const deleted = await deleteExperiment(deps, project.id, found.id, caller.label)
        return deleted.ok ? noContent : refuse(deleted.error)
      },
    }),
  ]
}

const noSuchExperiment = missing('There is no experiment with this id here.')

function refuse(error: ExperimentRefusal): Answer {
  if (typeof error === 'object') return refusal(invalidFlagError(error, attrOf))
  switch (error) {
    case 'not_found':
      return refusal(noSuchExperiment)
    case 'flag_without_variants':
      return refusal(invalidInput('feature_flag_key', 'The flag of this key has fewer than two variants.'))
    case 'flag_not_writable':
      return refusal(flagNotWritable)
    case 'key_taken':
    case 'flag_changed':
    case 'definitions_changed':
      return refusal(flagKeepsChanging)
    default:
      return error satisfies never
  }
}

function attrOf(flagPath: string): string {
  if (flagPath === 'key') return 'feature_flag_key'
  return flagPath.replace(/^filters\.multivariate\.variants/, 'parameters.feature_flag_variants')
}
