// A survey: the questions that a browser shows, and its audience. The server stores it and serves it; the SDK decides
// whether to show it, using the flags named here. Source: docs/wire/evaluation.md 7.5; PostHog's survey API.

import {
  authorField,
  booleanField,
  choiceField,
  type ItemOf,
  instantField,
  instantSchema,
  integerField,
  type JsonSchema,
  membersField,
  nameSchema,
  nullable,
  oneOf,
  orNull,
  textField,
  uuidField,
} from '../resource.ts'

/** A draft survey has not started yet, and a complete survey has ended. */
export const surveyStatuses = ['draft', 'running', 'complete'] as const
export type SurveyStatus = (typeof surveyStatuses)[number]

export const surveyTypes = ['popover', 'widget', 'api', 'external_survey'] as const

const question: JsonSchema = {
  type: 'object',
  required: ['type', 'question'],
  properties: {
    type: oneOf(['open', 'link', 'rating', 'single_choice', 'multiple_choice']),
    question: { type: 'string', minLength: 1 },
  },
}
const anyObject = (description?: string) =>
  orNull({ type: 'object', ...(description !== undefined && { description }) })
const count = orNull({ type: 'integer', minimum: 0 })
const shortText = orNull({ type: 'string', maxLength: 64 })
const onOff = orNull({ type: 'boolean' })

export const surveyResource = {
  table: 'survey',
  required: ['name', 'type'],
  fields: {
    id: uuidField('id'),
    projectId: integerField('project_id', { isShown: false }),
    name: textField('name', { schema: nameSchema(400) }),
    type: choiceField('type', surveyTypes),
    /** Sent to clients unchanged, so its JSON is kept, including literals. */
    content: membersField('content', {
      description: { schema: { type: 'string', maxLength: 10_000 }, shown: '' },
      questions: {
        schema: orNull({
          ...{ type: 'array', items: question, maxItems: 100 },
          description: 'Each has `type` and `question`; a missing `id` is generated.',
        }),
      },
      conditions: {
        schema: anyObject('Where and when the survey is shown: `url`, `selector`, `events`, `linkedFlagVariant`, …'),
      },
      appearance: { schema: anyObject('Colours, texts, position, `surveyPopupDelaySeconds`, …') },
      schedule: { schema: orNull(oneOf(['once', 'recurring', 'always'])), shown: 'once' },
      translations: { schema: anyObject() },
      enable_partial_responses: { schema: onOff },
      responses_limit: { schema: count },
      iteration_count: { schema: orNull({ type: 'integer', minimum: 0, maximum: 500 }) },
      iteration_frequency_days: { schema: count },
      current_iteration: { schema: count },
      current_iteration_start_date: { schema: shortText },
      response_sampling_start_date: { schema: shortText },
      response_sampling_interval_type: { schema: orNull(oneOf(['day', 'week', 'month'])), shown: 'week' },
      response_sampling_interval: { schema: count },
      response_sampling_limit: { schema: count },
      response_sampling_daily_limits: { schema: { description: 'Stored without effect: responses are not sampled.' } },
      enable_iframe_embedding: { schema: onOff },
      form_content: { schema: anyObject() },
    }),
    linkedFlagId: nullable(
      integerField('linked_flag_id', {
        schema: { type: 'integer', minimum: 1, description: 'Show the survey only to users for whom this flag is on.' },
      }),
    ),
    /** The flag made from the survey's own targeting filters; it is deleted with the survey. */
    targetingFlagId: nullable(integerField('targeting_flag_id', { isShown: false })),
    internalTargetingFlagId: nullable(integerField('internal_targeting_flag_id', { isShown: false })),
    startDateMs: nullable(instantField('start_date', { schema: instantSchema })),
    endDateMs: nullable(instantField('end_date', { schema: instantSchema })),
    archived: booleanField('archived', { schema: { type: 'boolean' }, initial: false }),
    createdAtMs: instantField('created_at'),
    updatedAtMs: instantField('updated_at'),
    createdBy: nullable(authorField('created_by')),
  },
} as const

export type Survey = ItemOf<typeof surveyResource>
