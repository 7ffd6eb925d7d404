// Surveys: what bodies and answers have besides the fields of `core/resources/survey.ts`.

import Type, { type Static } from 'typebox'
import { type Survey, surveyResource } from '#core/resources/survey.ts'
import { type LinkedFlagJson, linkedFlagSchema } from './linked-flag.ts'
import { buildBodySchemas, buildItemSchema, encodeItem } from './resource-json.ts'
import { jsonObjectSchema, nullable } from './shapes.ts'

const optional = Type.Optional
const bodies = buildBodySchemas(surveyResource, {
  linked_insight_id: optional(nullable(Type.Integer({ description: 'Only null: insights are not supported.' }))),
  targeting_flag_id: optional(
    nullable(
      Type.Integer({
        description: 'Must be the id of the flag created for the survey; change it with targeting_flag_filters.',
      }),
    ),
  ),
  targeting_flag_filters: optional(
    nullable(jsonObjectSchema('Filters of the flag created for the survey; null: show it to everyone.')),
  ),
  remove_targeting_flag: optional(nullable(Type.Boolean())),
})
export const updateSurveySchema = bodies.update
export const createSurveySchema = bodies.create
export type UpdateSurveyJson = Static<typeof updateSurveySchema>

export const surveySchema = buildItemSchema(surveyResource, {
  linked_flag: nullable(linkedFlagSchema),
  targeting_flag: nullable(linkedFlagSchema),
  internal_targeting_flag: nullable(linkedFlagSchema),
})

/** @param flagOf finds a flag by id, including a deleted one. */
export function encodeSurvey(survey: Survey, flagOf: (id: number | null) => LinkedFlagJson | null): object {
  return encodeItem(surveyResource, survey, {
    linked_flag: flagOf(survey.linkedFlagId),
    targeting_flag: flagOf(survey.targetingFlagId),
    internal_targeting_flag: flagOf(survey.internalTargetingFlagId),
  })
}
