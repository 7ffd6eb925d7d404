// How often surveys were shown, dismissed and answered, from events: for one survey, or for all that are not archived.

import { omitUndefined } from '#core/omit-undefined.ts'
import type { Project } from '#core/project.ts'
import { ok } from '#core/result.ts'
import { formatInstant } from '#wire/management/shapes.ts'
import { encodeSurveyStats, surveyStatsSchema, surveysStatsSchema } from '#wire/management/survey-stats.ts'
import {
  type Answer,
  answer,
  answerFromEventStore,
  createInvalidInputError,
  createNotFoundError,
  refusal,
} from './kit/answers.ts'
import type { ManagementDeps } from './kit/deps.ts'
import { type ManagementRoute, type ProjectCall, projectRoutes } from './kit/endpoint.ts'
import { readInstant } from './kit/instants.ts'
import { textParam } from './kit/query-params.ts'

const scope = 'survey:read'
/** An answer about all surveys covers at most this many, the newest ones. */
const surveysMax = 1_000
const query = {
  date_from: textParam('Only events from this time on: a time, a date, or a span such as -30d.'),
  date_to: textParam('Only events until this time.'),
}

export function surveyStatsRoutes(deps: ManagementDeps): ManagementRoute[] {
  return [
    ...projectRoutes(deps, {
      route: 'GET /surveys/stats',
      id: 'surveys_stats',
      summary: `Count how often surveys were shown, dismissed and answered: the newest ${surveysMax} that are not archived.`,
      scope,
      query,
      success: { status: 200, schema: surveysStatsSchema },
      handle: async call => answerCounts(call, await listActiveSurveyIds(call.project), {}),
    }),
    ...projectRoutes(deps, {
      route: 'GET /surveys/:surveyId/stats',
      id: 'surveys_stats_of_one',
      summary: 'Count how often one survey was shown, dismissed and answered.',
      scope,
      query: { ...query, survey_id: textParam('Must equal the survey id in the path.') },
      success: { status: 200, schema: surveyStatsSchema },
      handle: async call => {
        const id = call.params.surveyId!.toLowerCase()
        const survey = await deps.management.findResource('survey', call.project.id, id)
        if (survey === null) return refusal(createNotFoundError('The project has no survey with this id.'))
        if ((call.query.survey_id ?? survey.id).toLowerCase() !== survey.id)
          return refusal(createInvalidInputError('survey_id', 'Must equal the survey id in the path.'))
        const formatOrNull = (epochMs: number | null) => (epochMs === null ? null : formatInstant(epochMs))
        const { startDateMs, endDateMs } = survey
        return answerCounts(call, [id], {
          survey_id: id,
          start_date: formatOrNull(startDateMs),
          end_date: formatOrNull(endDateMs),
        })
      },
    }),
  ]

  async function listActiveSurveyIds(project: Project): Promise<string[]> {
    const ids: string[] = []
    while (ids.length < surveysMax) {
      const page = { limit: surveysMax - ids.length, offset: ids.length, archived: false }
      const { results } = await deps.management.listResources('survey', project.id, page)
      if (results.length === 0) break
      ids.push(...results.map(({ id }) => id))
    }
    return ids
  }

  async function answerCounts(
    { project, query: { date_from: dateFrom, date_to: dateTo }, signal }: ProjectCall<typeof query, unknown>,
    surveyIds: readonly string[],
    about: object,
  ): Promise<Answer> {
    const zone = { timezone: project.timezone, nowMs: deps.clock.nowMs() }
    const from = dateFrom === undefined ? ok(undefined) : readInstant(dateFrom, 'date_from', zone)
    if (!from.ok) return refusal(from.error)
    const to = dateTo === undefined ? ok(undefined) : readInstant(dateTo, 'date_to', zone)
    if (!to.ok) return refusal(to.error)
    if (from.value !== undefined && to.value !== undefined && from.value > to.value)
      return refusal(createInvalidInputError('date_from', 'Must not be after date_to.'))
    const asked = omitUndefined({ projectId: project.id, surveyIds, fromMs: from.value, toMs: to.value })
    return answerFromEventStore(async () =>
      answer(200, { ...about, ...encodeSurveyStats(await deps.events.countSurveyEvents(asked, signal)) }),
    )
  }
}
