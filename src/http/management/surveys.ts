// Surveys: list, create, read, change, delete.

import { omitUndefined } from '#core/omit-undefined.ts'
import type { Project } from '#core/project.ts'
import { type Survey, surveyResource, surveyStatuses, surveyTypes } from '#core/resources/survey.ts'
import { err, ok, type Result } from '#core/result.ts'
import {
  createSurvey,
  deleteSurvey,
  type SurveyFields,
  type SurveyRefusal,
  updateSurvey,
} from '#services/manage/manage-surveys.ts'
import { postHogSurveyFields } from '#wire/management/posthog-fields.ts'
import {
  createSurveySchema,
  encodeSurvey,
  surveySchema,
  type UpdateSurveyJson,
  updateSurveySchema,
} from '#wire/management/surveys.ts'
import { isWireError, type WireError, wireError } from '#wire/wire-error.ts'
import { createInvalidInputError } from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import type { ItemCall, ManagementRoute } from './kit/endpoint.ts'
import { flagNotReadable, loadLinkedFlags, toFlagOwnerError, toWriter } from './kit/linked-flags.ts'
import { asFilter, authorsParam, listChosenAuthors, uuidsParam } from './kit/list-filters.ts'
import { booleanParam, choiceParam, type QuerySpec, searchParam } from './kit/query-params.ts'
import { createNoSuchItemError, defineItemAction, readBodyFields, resourceRoutes } from './kit/resource-routes.ts'

export function surveysRoutes(deps: ManagementDeps): ManagementRoute[] {
  const { management, clock } = deps
  const readFields = (
    body: UpdateSurveyJson,
    project: Project,
    own: Survey | null,
  ): Result<SurveyFields, WireError> => {
    if (typeof body.linked_insight_id === 'number') return err(noInsights)
    if (typeof body.targeting_flag_id === 'number' && body.targeting_flag_id !== own?.targetingFlagId)
      return err(foreignTargetingFlag)
    const fields = readBodyFields(surveyResource, body, project, clock.nowMs())
    const targetingFilters = body.remove_targeting_flag === true ? null : body.targeting_flag_filters
    return fields.ok ? ok({ ...fields.value, ...omitUndefined({ targetingFilters }) }) : fields
  }

  const write = async (
    call: ItemCall<Survey, QuerySpec, unknown>,
    fieldsOf: (current: Survey) => Result<SurveyFields, WireError>,
  ) => toWireResult(await updateSurvey(deps, call.project.id, call.item.id, fieldsOf, toWriter(call)))
  const update = (call: ItemCall<Survey, QuerySpec, UpdateSurveyJson>) =>
    write(call, current => readFields(call.body, call.project, current))

  return resourceRoutes(deps, {
    tag: 'surveys',
    resource: 'survey',
    summaries: {
      create: 'Create a survey. Browsers show it once it has a `start_date`.',
      update: 'Update fields of a survey. `end_date` stops it, `archived` hides it.',
      destroy: 'Delete a survey and the flags created for it. Responses are kept, as events.',
    },
    schemas: { item: surveySchema, create: createSurveySchema, update: updateSurveySchema },
    postHogFields: postHogSurveyFields,
    filters: {
      search: searchParam('Substring of the name or description, case-insensitive.'),
      archived: booleanParam('true: only archived surveys. false: only unarchived ones.'),
      status: asFilter(choiceParam(surveyStatuses, 'Only drafts, running or ended surveys.')),
      type: asFilter(choiceParam(surveyTypes, 'Only surveys of this type.')),
      ids: uuidsParam('Only surveys with these ids, comma-separated.'),
      created_by: authorsParam(),
    },
    list: async (projectId, { limit, offset, search, archived, status, type, ids, created_by: authors }) => {
      const createdBy = await listChosenAuthors(management, projectId, 'survey', authors)
      const filters = omitUndefined({ search, archived, status, type, ids, createdBy })
      return management.listResources('survey', projectId, { limit, offset, ...filters })
    },
    encode: async (caller, projectId, surveys: readonly Survey[]) => {
      const ids = surveys.flatMap(each => [each.linkedFlagId, each.targetingFlagId, each.internalTargetingFlagId])
      const flagOf = await loadLinkedFlags(management, caller, projectId, ids)
      return surveys.map(each => encodeSurvey(each, flagOf))
    },
    create: async call => {
      const { project, body } = call
      const fields = readFields(body, project, null)
      if (!fields.ok) return fields
      const input = { ...fields.value, name: body.name, type: body.type }
      return toWireResult(await createSurvey(deps, project.id, input, toWriter(call)))
    },
    update,
    replace: {
      summary: 'Like PATCH, but `name` and `type` are required. Omitted fields are unchanged, as in PostHog.',
      update,
    },
    actions: [
      defineItemAction({
        name: 'launch',
        summary: 'Start a survey now. It must be a draft.',
        run: (call: ItemCall<Survey, QuerySpec, unknown>) =>
          write(call, ({ startDateMs }) =>
            startDateMs === null ? ok({ startDateMs: call.change.atMs }) : err(noDraft),
          ),
      }),
      defineItemAction({
        name: 'stop',
        summary: 'Stop a survey now. It must be running.',
        run: (call: ItemCall<Survey, QuerySpec, unknown>) =>
          write(call, ({ startDateMs, endDateMs }) =>
            startDateMs !== null && endDateMs === null ? ok({ endDateMs: call.change.atMs }) : err(notRunning),
          ),
      }),
    ],
    destroy: async ({ change, project, item }) => toWireResult(await deleteSurvey(deps, project.id, item.id, change)),
  })
}

const noInsights = createInvalidInputError(
  'linked_insight_id',
  'Insights are not supported, so a survey cannot be linked to one.',
)
const foreignTargetingFlag = createInvalidInputError(
  'targeting_flag_id',
  'The targeting flag is created for the survey: send targeting_flag_filters, or linked_flag_id for an existing flag.',
)
const noDraft = createInvalidInputError(
  'start_date',
  'The survey has already started. To resume an ended survey, send `end_date: null`.',
)
const notRunning = createInvalidInputError('end_date', 'The survey is not running.')
const errors = {
  not_found: createNoSuchItemError('survey'),
  no_questions: wireError(400, 'required', 'A survey needs questions before it starts.', 'questions'),
  no_such_flag: createInvalidInputError('linked_flag_id', 'The project has no feature flag with this id.'),
  flag_not_readable: flagNotReadable,
}

function toWireResult<T>(result: Result<T, SurveyRefusal | WireError>): Result<T, WireError> {
  if (result.ok) return result
  if (isWireError(result.error)) return err(result.error)
  return err(toFlagOwnerError(result.error, errors, attr => attr.replace(/^filters/, 'targeting_flag_filters')))
}
