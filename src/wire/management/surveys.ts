// Surveys. `Survey.content` is passed to clients as it is, so its JSON is kept, including literals.

import Type, { type Static } from 'typebox'
import { type JsonObject, ownValue, setOwn } from '#core/json.ts'
import type { Survey } from '#core/surveys/survey.ts'
import { authorSchema, encodeAuthor } from './author.ts'
import { type LinkedFlagJson, linkedFlagSchema } from './linked-flag.ts'
import { instant, instantSchema, jsonObjectSchema, nullable, uuidSchema } from './shapes.ts'

const oneOf = (names: readonly string[]) => Type.Unsafe<string>(Type.Union(names.map(name => Type.Literal(name))))
export const surveyTypes = ['popover', 'widget', 'api', 'external_survey'] as const
const type = oneOf(surveyTypes)
const question = Type.Unsafe<JsonObject>({
  type: 'object',
  required: ['type', 'question'],
  properties: {
    type: {
      anyOf: ['open', 'link', 'rating', 'single_choice', 'multiple_choice'].map(name => ({ const: name })),
    },
    question: { type: 'string', minLength: 1 },
  },
})
const schedule = oneOf(['once', 'recurring', 'always'])

/** Members of `Survey.content`, which have the same name everywhere. */
const contentFields = {
  description: Type.String({ maxLength: 10_000 }),
  questions: nullable(
    Type.Array(question, {
      maxItems: 100,
      description: 'Each has `type` and `question`; a missing `id` is generated.',
    }),
  ),
  conditions: nullable(
    jsonObjectSchema('Where and when the survey is shown: `url`, `selector`, `events`, `linkedFlagVariant`, …'),
  ),
  appearance: nullable(jsonObjectSchema('Colours, texts, position, `surveyPopupDelaySeconds`, …')),
  schedule: nullable(schedule),
  translations: nullable(jsonObjectSchema()),
  enable_partial_responses: nullable(Type.Boolean()),
  responses_limit: nullable(Type.Integer({ minimum: 0 })),
  iteration_count: nullable(Type.Integer({ minimum: 0, maximum: 500 })),
  iteration_frequency_days: nullable(Type.Integer({ minimum: 0 })),
  current_iteration: nullable(Type.Integer({ minimum: 0 })),
  current_iteration_start_date: nullable(Type.String({ maxLength: 64 })),
  response_sampling_start_date: nullable(Type.String({ maxLength: 64 })),
  response_sampling_interval_type: nullable(oneOf(['day', 'week', 'month'])),
  response_sampling_interval: nullable(Type.Integer({ minimum: 0 })),
  response_sampling_limit: nullable(Type.Integer({ minimum: 0 })),
  response_sampling_daily_limits: Type.Unknown({ description: 'Stored without effect: responses are not sampled.' }),
  enable_iframe_embedding: nullable(Type.Boolean()),
  form_content: nullable(jsonObjectSchema()),
}
/** The values that an answer shows in place of null. Source: PostHog's survey API. */
const contentDefaults: JsonObject = { description: '', schedule: 'once', response_sampling_interval_type: 'week' }
const contentNames = Object.keys(contentFields) as (keyof typeof contentFields)[]

const instantText = Type.String({
  maxLength: 64,
  description: "A time with offset, a date, or a local time in the project's time zone.",
})
const fields = {
  name: Type.String({ minLength: 1, maxLength: 400, pattern: '\\S' }),
  type,
  ...contentFields,
  linked_flag_id: nullable(
    Type.Integer({ minimum: 1, description: 'Show the survey only to users for whom this flag is on.' }),
  ),
  linked_insight_id: nullable(Type.Integer({ description: 'Only null: insights are not supported.' })),
  targeting_flag_id: nullable(
    Type.Integer({
      description: 'Must be the id of the flag created for the survey; change it with targeting_flag_filters.',
    }),
  ),
  targeting_flag_filters: nullable(
    jsonObjectSchema('Filters of the flag created for the survey; null: show it to everyone.'),
  ),
  remove_targeting_flag: nullable(Type.Boolean()),
  start_date: nullable(instantText),
  end_date: nullable(instantText),
  archived: Type.Boolean(),
}

export const updateSurveySchema = Type.Partial(Type.Object(fields))
export type UpdateSurveyJson = Static<typeof updateSurveySchema>
export const createSurveySchema = Type.Object({
  ...updateSurveySchema.properties,
  name: fields.name,
  type: fields.type,
})

export const surveySchema = Type.Object({
  id: uuidSchema,
  name: Type.String(),
  type: Type.String(),
  ...Type.Partial(Type.Object(contentFields)).properties,
  linked_flag: nullable(linkedFlagSchema),
  linked_flag_id: nullable(Type.Integer()),
  targeting_flag: nullable(linkedFlagSchema),
  internal_targeting_flag: nullable(linkedFlagSchema),
  start_date: nullable(instantSchema),
  end_date: nullable(instantSchema),
  archived: Type.Boolean(),
  created_at: instantSchema,
  updated_at: instantSchema,
  created_by: authorSchema,
})

export interface SurveyFlags {
  readonly linked: LinkedFlagJson | null
  readonly targeting: LinkedFlagJson | null
  readonly internal: LinkedFlagJson | null
}

export function encodeSurvey(survey: Survey, flags: SurveyFlags): object {
  const content: JsonObject = {}
  for (const name of contentNames) content[name] = ownValue(survey.content, name) ?? contentDefaults[name] ?? null
  return {
    id: survey.id,
    name: survey.name,
    type: survey.type,
    ...content,
    linked_flag: flags.linked,
    linked_flag_id: survey.linkedFlagId,
    targeting_flag: flags.targeting,
    internal_targeting_flag: flags.internal,
    start_date: survey.startDateMs === null ? null : instant(survey.startDateMs),
    end_date: survey.endDateMs === null ? null : instant(survey.endDateMs),
    archived: survey.archived,
    created_at: instant(survey.createdAtMs),
    updated_at: instant(survey.updatedAtMs),
    created_by: encodeAuthor(survey.createdBy),
  }
}

/** The members of the content in a body; undefined when it has none. */
export function decodeSurveyContent(body: UpdateSurveyJson): JsonObject | undefined {
  const content: JsonObject = {}
  const sent = body as JsonObject
  for (const name of contentNames) {
    const value = ownValue(sent, name)
    if (value !== undefined) setOwn(content, name, value)
  }
  return Object.keys(content).length === 0 ? undefined : content
}
