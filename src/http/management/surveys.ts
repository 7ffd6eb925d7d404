// Surveys: list, create, read, change, delete.

import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Survey } from '#core/surveys/survey.ts'
import type { PersonalKey } from '#ports/management-store.ts'
import {
  createSurvey,
  deleteSurvey,
  type SurveyFields,
  type SurveyRefusal,
  updateSurvey,
} from '#services/manage/manage-surveys.ts'
import { countedPageSchema } from '#wire/management/shapes.ts'
import {
  createSurveySchema,
  decodeSurveyContent,
  encodeSurvey,
  surveySchema,
  type UpdateSurveyJson,
  updateSurveySchema,
} from '#wire/management/surveys.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { type Answer, answer, invalidInput, missing, noContent, refusal } from './kit/answers.ts'
import { readBodyDates } from './kit/body-dates.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from './kit/endpoint.ts'
import { flagKeepsChanging, flagNotReadable, invalidFlagError, linkedFlagsById, writerOf } from './kit/owned-flags.ts'
import { countedPage } from './kit/page.ts'
import { booleanParam, pageParams, type QuerySpec, searchParam } from './kit/query-params.ts'

const tag = 'surveys'
const read = 'survey:read'
const write = 'survey:write'
const path = '/surveys'
const itemPath = `${path}/:surveyId`

export function surveysRoutes(deps: ManagementDeps): ManagementRoute[] {
  const { management, clock } = deps
  const encodeAll = async (caller: PersonalKey, projectId: number, surveys: readonly Survey[]) => {
    const ids = surveys.flatMap(survey => [survey.linkedFlagId, survey.targetingFlagId, survey.internalTargetingFlagId])
    const find = await linkedFlagsById(management, caller, projectId, ids)
    return surveys.map(survey =>
      encodeSurvey(survey, {
        linked: find(survey.linkedFlagId),
        targeting: find(survey.targetingFlagId),
        internal: find(survey.internalTargetingFlagId),
      }),
    )
  }
  const encode = async (caller: PersonalKey, survey: Survey) => (await encodeAll(caller, survey.projectId, [survey]))[0]
  const readFields = (
    body: UpdateSurveyJson,
    project: Project,
    own: Survey | null,
  ): Result<SurveyFields, WireError> => {
    if (typeof body.linked_insight_id === 'number') return err(noInsights)
    if (typeof body.targeting_flag_id === 'number' && body.targeting_flag_id !== own?.targetingFlagId)
      return err(foreignTargetingFlag)
    const dates = readBodyDates(body, project, clock)
    if (!dates.ok) return dates
    const content = decodeSurveyContent(body)
    const targeting = body.remove_targeting_flag === true ? null : body.targeting_flag_filters
    return ok({
      ...dates.value,
      ...(body.name === undefined ? {} : { name: body.name }),
      ...(body.type === undefined ? {} : { type: body.type }),
      ...(content === undefined ? {} : { content }),
      ...(body.linked_flag_id === undefined ? {} : { linkedFlagId: body.linked_flag_id }),
      ...(targeting === undefined ? {} : { targetingFilters: targeting }),
      ...(body.archived === undefined ? {} : { archived: body.archived }),
    })
  }

  return [
    ...projectRoutes(deps, {
      method: 'GET',
      path,
      id: 'surveys_list',
      tag,
      summary: 'List surveys, newest first.',
      scope: read,
      query: {
        ...pageParams(),
        search: searchParam('Part of a name, in any case.'),
        archived: booleanParam('Only archived surveys, or only others.'),
      },
      success: { status: 200, schema: countedPageSchema(surveySchema) },
      handle: async ({ request, caller, project, query }) => {
        const { limit, offset, search, archived } = query
        const { count, results } = await management.listSurveys(project.id, {
          ...{ limit, offset },
          ...(search === undefined ? {} : { search }),
          ...(archived === undefined ? {} : { archived }),
        })
        return answer(200, countedPage(request, query, count, await encodeAll(caller, project.id, results)))
      },
    }),
    ...projectRoutes(deps, {
      method: 'POST',
      path,
      id: 'surveys_create',
      tag,
      summary: 'Create a survey. Browsers show it from the moment it has a `start_date`.',
      scope: write,
      body: createSurveySchema,
      success: { status: 201, schema: surveySchema },
      handle: async ({ caller, project, body }) => {
        const fields = readFields(body, project, null)
        if (!fields.ok) return refusal(fields.error)
        const input = { ...fields.value, name: body.name, type: body.type }
        const created = await createSurvey(deps, project.id, input, writerOf(caller))
        return created.ok ? answer(201, await encode(caller, created.value)) : refuse(created.error)
      },
    }),
    ...projectRoutes(deps, {
      method: 'GET',
      path: itemPath,
      id: 'surveys_retrieve',
      tag,
      summary: 'One survey.',
      scope: read,
      success: { status: 200, schema: surveySchema },
      handle: async ({ caller, project, params }) => {
        const survey = await management.findSurvey(project.id, params.surveyId!.toLowerCase())
        return survey === null ? refusal(noSuchSurvey) : answer(200, await encode(caller, survey))
      },
    }),
    ...projectRoutes(deps, {
      method: 'PATCH',
      path: itemPath,
      id: 'surveys_partial_update',
      tag,
      summary: 'Change some of a survey. An `end_date` stops it, `archived` hides it.',
      scope: write,
      body: updateSurveySchema,
      success: { status: 200, schema: surveySchema },
      handle: update,
    }),
    ...projectRoutes(deps, {
      method: 'PUT',
      path: itemPath,
      id: 'surveys_update',
      tag,
      summary: 'As PATCH, with `name` and `type` needed: what is not named stays, as in PostHog.',
      scope: write,
      body: createSurveySchema,
      success: { status: 200, schema: surveySchema },
      handle: update,
    }),
    ...projectRoutes(deps, {
      method: 'DELETE',
      path: itemPath,
      id: 'surveys_destroy',
      tag,
      summary: 'Delete a survey with the flags that were made for it. Answers stay: they are events.',
      scope: write,
      success: { status: 204 },
      handle: async ({ caller, project, params }) => {
        const deleted = await deleteSurvey(deps, project.id, params.surveyId!.toLowerCase(), caller.label)
        return deleted.ok ? noContent : refuse(deleted.error)
      },
    }),
  ]

  async function update(call: ProjectCall<QuerySpec, UpdateSurveyJson>): Promise<Answer> {
    const { caller, project, params, body } = call
    const id = params.surveyId!.toLowerCase()
    const survey = await management.findSurvey(project.id, id)
    if (survey === null) return refusal(noSuchSurvey)
    const fields = readFields(body, project, survey)
    if (!fields.ok) return refusal(fields.error)
    const updated = await updateSurvey(deps, project.id, id, fields.value, writerOf(caller))
    return updated.ok ? answer(200, await encode(caller, updated.value)) : refuse(updated.error)
  }
}

const noInsights = invalidInput('linked_insight_id', 'There are no insights here that a survey could be linked to.')
const foreignTargetingFlag = invalidInput(
  'targeting_flag_id',
  'A survey makes its own targeting flag: send targeting_flag_filters, or linked_flag_id for a flag that is there.',
)
const noSuchSurvey = missing('There is no survey with this id here.')

function refuse(error: SurveyRefusal): Answer {
  if (typeof error === 'object')
    return refusal(invalidFlagError(error, attr => attr.replace(/^filters/, 'targeting_flag_filters')))
  switch (error) {
    case 'not_found':
      return refusal(noSuchSurvey)
    case 'no_questions':
      return refusal(wireError(400, 'required', 'A survey needs questions before it starts.', 'questions'))
    case 'no_such_flag':
      return refusal(invalidInput('linked_flag_id', 'There is no feature flag with this id here.'))
    case 'flag_not_readable':
      return refusal(flagNotReadable)
    case 'key_taken':
    case 'flag_changed':
    case 'definitions_changed':
      return refusal(flagKeepsChanging)
    default:
      return error satisfies never
  }
}
