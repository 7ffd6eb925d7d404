// Early access features.

import Type, { type Static } from 'typebox'
import {
  type EarlyAccessFeature,
  type EarlyAccessStage,
  earlyAccessStages,
} from '#core/early-access/early-access-feature.ts'
import { type LinkedFlagJson, linkedFlagSchema } from '../linked-flag.ts'
import { instant, instantSchema, jsonObjectSchema, nullable, uuidSchema } from '../shapes.ts'

const stage = Type.Unsafe<EarlyAccessStage>(Type.Union(earlyAccessStages.map(name => Type.Literal(name))))

export const earlyAccessFeatureSchema = Type.Object({
  id: uuidSchema,
  feature_flag: nullable(linkedFlagSchema),
  name: Type.String(),
  description: Type.String(),
  stage,
  documentation_url: Type.String(),
  payload: jsonObjectSchema(),
  created_at: instantSchema,
})
export type EarlyAccessFeatureJson = Static<typeof earlyAccessFeatureSchema>

const fields = {
  name: Type.String({ minLength: 1, maxLength: 200, pattern: '\\S' }),
  description: Type.String({ maxLength: 10_000 }),
  stage,
  documentation_url: Type.String({ maxLength: 800, description: 'Documentation URL for users; http or https.' }),
  payload: jsonObjectSchema('Passed to web pages unchanged.'),
}

const flagId = (description: string) => Type.Optional(nullable(Type.Integer({ minimum: 1, description })))

export const updateEarlyAccessFeatureSchema = Type.Object({
  ...Type.Partial(Type.Object(fields)).properties,
  feature_flag_id: flagId('Must be the id of its current flag, which cannot be changed.'),
})
export type UpdateEarlyAccessFeatureJson = Static<typeof updateEarlyAccessFeatureSchema>
export const createEarlyAccessFeatureSchema = Type.Object({
  ...updateEarlyAccessFeatureSchema.properties,
  name: fields.name,
  feature_flag_id: flagId('Flag to offer for early access; created if omitted.'),
})

/** @param flag null when the flag was deleted. */
export function encodeEarlyAccessFeature(
  feature: EarlyAccessFeature,
  flag: LinkedFlagJson | null,
): EarlyAccessFeatureJson {
  return {
    id: feature.id,
    feature_flag: flag,
    name: feature.name,
    description: feature.description,
    stage: feature.stage,
    documentation_url: feature.documentationUrl,
    payload: feature.payload,
    created_at: instant(feature.createdAtMs),
  }
}

/** The fields that a body has, under the core's names. */
export function decodeEarlyAccessFeature(
  body: UpdateEarlyAccessFeatureJson,
): Partial<Pick<EarlyAccessFeature, 'name' | 'description' | 'stage' | 'documentationUrl' | 'payload'>> {
  return {
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(body.stage === undefined ? {} : { stage: body.stage }),
    ...(body.documentation_url === undefined ? {} : { documentationUrl: body.documentation_url }),
    ...(body.payload === undefined ? {} : { payload: body.payload }),
  }
}
