// Experiments. Everything apart from their flag and dates is kept and returned as it is.

import Type, { type Static } from 'typebox'
import { experimentStatuses, statusOfExperiment } from '#core/experiments/filter-experiments.ts'
import { flagKeyLengthMax } from '#core/flags/definitions/validate-flag.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, mergeObjects, setOwnValue } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { type Experiment, experimentResource } from '#core/resources/experiment.ts'
import { type LinkedFlagJson, linkedFlagSchema } from './linked-flag.ts'
import { buildBodySchemas, buildItemSchema, encodeItem } from './resource-json.ts'
import { jsonObjectSchema, nullable } from './shapes.ts'

/** The flag as PostHog's tools configure it; sending it back as it was answered has no effect. */
const flagConfigSchema = nullable(
  Type.Object(
    {
      ...Type.Partial(linkedFlagSchema).properties,
      filters: Type.Optional(nullable(jsonObjectSchema("Replaces the flag's filters, field by field."))),
      ensure_experience_continuity: Type.Optional(nullable(Type.Boolean())),
    },
    {
      description:
        'Accepts `filters`, `ensure_experience_continuity` and, on creation, `active`. Change other fields on the flag itself.',
    },
  ),
)

const extra = {
  feature_flag: Type.Optional(flagConfigSchema),
  update_feature_flag_params: Type.Optional(
    Type.Boolean({ description: 'Allow changes of the flag while the experiment is running.' }),
  ),
  allow_unknown_events: Type.Optional(Type.Boolean({ description: 'No effect: events of metrics are never checked.' })),
}

export const updateExperimentSchema = buildBodySchemas(experimentResource, {
  ...extra,
  feature_flag_key: Type.Optional(
    nullable(Type.String({ description: 'Must be the current key: the flag of an experiment cannot be changed.' })),
  ),
  deleted: Type.Optional(Type.Boolean({ description: 'true deletes the experiment, like DELETE.' })),
}).update
export type UpdateExperimentJson = Static<typeof updateExperimentSchema>
export const createExperimentSchema = buildBodySchemas(experimentResource, {
  ...extra,
  feature_flag_key: Type.String({
    minLength: 1,
    maxLength: flagKeyLengthMax,
    description: 'Key of an existing flag with at least two variants, or of the flag to create.',
  }),
}).create

export const experimentSchema = buildItemSchema(experimentResource, {
  feature_flag_key: nullable(Type.String()),
  feature_flag: nullable(linkedFlagSchema),
  status: Type.Union(
    experimentStatuses.map(status => Type.Literal(status)),
    { description: '`paused`: running with its flag disabled.' },
  ),
  deleted: Type.Boolean(),
})

/** @param flag the experiment's flag, even a deleted one; null when there is none. */
export function encodeExperiment(experiment: Experiment, flag: LinkedFlagJson | null, deleted = false): object {
  return encodeItem(experimentResource, experiment, {
    feature_flag_key: flag?.key ?? null,
    feature_flag: flag,
    status: statusOfExperiment(experiment, flag?.active === true),
    deleted,
  })
}

/** The content without the payloads of `parameters`: only the flag, which may have to encrypt them, keeps them. */
export function removeParameterPayloads(content: JsonObject): JsonObject {
  const parameters = getOwnValue(content, 'parameters')
  return parameters === undefined ? content : mergeObjects(content, { parameters: omitPayloads(parameters) })
}

function omitPayloads(parameters: JsonValue): JsonValue {
  if (!isJsonObject(parameters)) return parameters
  const others = mergeObjects(parameters, {})
  delete others.feature_flag_payloads
  return others
}

/** Parts of `parameters` that PostHog's older tools configure the flag with. */
const legacyFlagParameters = [
  ...(['feature_flag_variants', 'rollout_percentage', 'aggregation_group_type_index'] as const),
  ...(['feature_flag_payloads', 'ensure_experience_continuity'] as const),
] as const

/** The parts of the flag that a body sets; a member is absent if the body does not set it. */
export interface SentFlagFields {
  readonly filters?: JsonObject
  readonly ensureExperienceContinuity?: JsonValue
}

/**
 * `feature_flag` wins over `parameters`.
 * @param stored the parameters that an experiment has: sending the stored value back has no effect.
 */
export function decodeSentFlagFields(body: UpdateExperimentJson, stored: JsonObject | null): SentFlagFields {
  const sent = body as unknown as JsonObject
  const parameters = getOwnValue(sent, 'parameters')
  const readChangedParameter = (name: (typeof legacyFlagParameters)[number]) => {
    const value = isJsonObject(parameters) ? (getOwnValue(parameters, name) ?? undefined) : undefined
    const before = stored === null ? undefined : (getOwnValue(stored, name) ?? undefined)
    return value === undefined || isSameJson(value, before) ? undefined : value
  }
  const [variants, percentage, groupType, payloads, continuity] = legacyFlagParameters.map(readChangedParameter)
  const flag = getOwnValue(sent, 'feature_flag')
  const filters = isJsonObject(flag) ? getOwnValue(flag, 'filters') : undefined
  const ensures = (isJsonObject(flag) ? getOwnValue(flag, 'ensure_experience_continuity') : undefined) ?? continuity
  const decoded: JsonObject = {
    ...(Array.isArray(variants) && variants.length > 0 && { multivariate: { variants } }),
    ...(percentage !== undefined && { groups: [{ properties: [], rollout_percentage: percentage }] }),
    ...(groupType !== undefined && { aggregation_group_type_index: groupType }),
    ...(payloads !== undefined && !isSameJson(payloads, {}) && { payloads }),
  }
  if (isJsonObject(filters)) for (const [name, value] of Object.entries(filters)) setOwnValue(decoded, name, value)
  return {
    ...(Object.keys(decoded).length > 0 && { filters: decoded }),
    ...(ensures !== undefined && { ensureExperienceContinuity: ensures }),
  }
}
