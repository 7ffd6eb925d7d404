// Statistics of surveys, as in PostHog's API: counts, and rates as a percentage of how often a survey was shown.
// Source: PostHog's survey API.

import Type, { type Static } from 'typebox'
import { type SurveyCount, type SurveyCounts, surveyEvents } from '#core/surveys/survey-events.ts'
import { formatInstant, instantSchema, nullable, uuidSchema } from './shapes.ts'

const countSchema = Type.Object({
  total_count: Type.Integer({ description: 'Responses sent in parts count once.' }),
  unique_persons: Type.Integer({ description: '`survey dismissed` events, without persons who also responded.' }),
  first_seen: nullable(instantSchema),
  last_seen: nullable(instantSchema),
  total_count_only_seen: Type.Integer({
    description: 'Shown but neither dismissed nor sent, for `survey shown`; otherwise 0.',
  }),
  unique_persons_only_seen: Type.Integer(),
})
const rate = Type.Number({ description: 'Per cent with two decimal places; 0 if never shown.' })

const statsFields = {
  stats: Type.Object({
    [surveyEvents.shown]: countSchema,
    [surveyEvents.dismissed]: countSchema,
    [surveyEvents.sent]: countSchema,
  }),
  rates: Type.Object({
    response_rate: rate,
    dismissal_rate: rate,
    unique_users_response_rate: rate,
    unique_users_dismissal_rate: rate,
  }),
}
export const surveysStatsSchema = Type.Object(statsFields)
export type SurveysStatsJson = Static<typeof surveysStatsSchema>
export const surveyStatsSchema = Type.Object({
  survey_id: uuidSchema,
  start_date: nullable(instantSchema),
  end_date: nullable(instantSchema),
  ...statsFields,
})

export function encodeSurveyStats({ shown, dismissed, sent, personsDismissedAndSent }: SurveyCounts): SurveysStatsJson {
  const dismissing = Math.max(0, dismissed.persons - personsDismissedAndSent)
  const perCent = (part: number, whole: number) => (whole === 0 ? 0 : Math.round((part / whole) * 10_000) / 100)
  return {
    stats: {
      [surveyEvents.shown]: {
        ...encodeCount(shown),
        total_count_only_seen: Math.max(0, shown.count - dismissed.count - sent.count),
        unique_persons_only_seen: Math.max(0, shown.persons - dismissing - sent.persons),
      },
      [surveyEvents.dismissed]: { ...encodeCount(dismissed), unique_persons: dismissing },
      [surveyEvents.sent]: encodeCount(sent),
    },
    rates: {
      response_rate: perCent(sent.count, shown.count),
      dismissal_rate: perCent(dismissed.count, shown.count),
      unique_users_response_rate: perCent(sent.persons, shown.persons),
      unique_users_dismissal_rate: perCent(dismissing, shown.persons),
    },
  }
}

function encodeCount({ count, persons, firstMs, lastMs }: SurveyCount) {
  return {
    total_count: count,
    unique_persons: persons,
    first_seen: firstMs === null ? null : formatInstant(firstMs),
    last_seen: lastMs === null ? null : formatInstant(lastMs),
    total_count_only_seen: 0,
    unique_persons_only_seen: 0,
  }
}
