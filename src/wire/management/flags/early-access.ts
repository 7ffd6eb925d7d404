// Early access features: what bodies and answers have besides the fields of `core/resources/early-access-feature.ts`.

import Type from 'typebox'
import { type EarlyAccessFeature, earlyAccessFeatureResource } from '#core/resources/early-access-feature.ts'
import { type LinkedFlagJson, linkedFlagSchema } from '../linked-flag.ts'
import { buildBodySchemas, buildItemSchema, encodeItem } from '../resource-json.ts'
import { nullable } from '../shapes.ts'

const createFlagIdField = (description: string) => ({
  feature_flag_id: Type.Optional(nullable(Type.Integer({ minimum: 1, description }))),
})

export const updateEarlyAccessFeatureSchema = buildBodySchemas(
  earlyAccessFeatureResource,
  createFlagIdField('Must be the id of its current flag, which cannot be changed.'),
).update
export const createEarlyAccessFeatureSchema = buildBodySchemas(
  earlyAccessFeatureResource,
  createFlagIdField('Flag to offer for early access; created if omitted.'),
).create

export const earlyAccessFeatureSchema = buildItemSchema(earlyAccessFeatureResource, {
  feature_flag: nullable(linkedFlagSchema),
})

/** @param flag null when the flag was deleted. */
export function encodeEarlyAccessFeature(feature: EarlyAccessFeature, flag: LinkedFlagJson | null): object {
  return encodeItem(earlyAccessFeatureResource, feature, { feature_flag: flag })
}
