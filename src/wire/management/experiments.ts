// Experiments. Everything apart from their flag and dates is kept and returned as it is.

import Type, { type Static } from 'typebox'
import { experimentStatuses, statusOfExperiment } from '#core/experiments/choose-experiments.ts'
import type { Experiment } from '#core/experiments/experiment.ts'
import { flagKeyLengthMax } from '#core/flags/definitions/validate-flag.ts'
import { isJsonObject, type JsonObject, type JsonValue, mergeObjects, ownValue, setOwn } from '#core/json.ts'
import { isSameJson } from '#core/json-equal.ts'
import { authorSchema, encodeAuthor } from './author.ts'
import { type LinkedFlagJson, linkedFlagSchema } from './linked-flag.ts'
import { instant, instantSchema, jsonObjectSchema, nullable } from './shapes.ts'

const jsonList = () => Type.Array(Type.Unknown(), { maxItems: 200 })

/** Members of `Experiment.content`. */
const contentFields = {
  description: nullable(Type.String({ maxLength: 10_000 })),
  type: nullable(Type.String({ maxLength: 100 })),
  parameters: nullable(
    jsonObjectSchema('`feature_flag_variants` and other fields configure the flag; payloads are not stored here.'),
  ),
  metrics: nullable(jsonList()),
  metrics_secondary: nullable(jsonList()),
  secondary_metrics: nullable(jsonList()),
  saved_metrics_ids: nullable(jsonList()),
  filters: nullable(jsonObjectSchema()),
  exposure_criteria: nullable(jsonObjectSchema()),
  stats_config: nullable(jsonObjectSchema()),
  conclusion: nullable(Type.String({ maxLength: 100 })),
  conclusion_comment: nullable(Type.String({ maxLength: 10_000 })),
}
const contentNames = Object.keys(contentFields) as (keyof typeof contentFields)[]

/** The flag as PostHog's tools configure it; sending an answered one back unchanged has no effect. */
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

const instantText = Type.String({
  maxLength: 64,
  description: "A time with offset, a date, or a local time in the project's time zone.",
})
const fields = {
  name: Type.String({ minLength: 1, maxLength: 400, pattern: '\\S' }),
  ...contentFields,
  start_date: nullable(instantText),
  end_date: nullable(instantText),
  archived: Type.Boolean(),
  feature_flag: flagConfigSchema,
  update_feature_flag_params: Type.Boolean({
    description: 'Allow changes of the flag while the experiment is running.',
  }),
  allow_unknown_events: Type.Boolean({ description: 'No effect: events of metrics are never checked.' }),
}

export const updateExperimentSchema = Type.Object({
  ...Type.Partial(Type.Object(fields)).properties,
  feature_flag_key: Type.Optional(
    nullable(Type.String({ description: 'Must be the current key: the flag of an experiment cannot be changed.' })),
  ),
  deleted: Type.Optional(Type.Boolean({ description: 'true deletes the experiment, like DELETE.' })),
})
export type UpdateExperimentJson = Static<typeof updateExperimentSchema>
export const createExperimentSchema = Type.Object({
  ...Type.Partial(Type.Object(fields)).properties,
  name: fields.name,
  feature_flag_key: Type.String({
    minLength: 1,
    maxLength: flagKeyLengthMax,
    description: 'Key of an existing flag with at least two variants, or of the flag to create.',
  }),
})

export const experimentSchema = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  feature_flag_key: nullable(Type.String()),
  feature_flag: nullable(linkedFlagSchema),
  ...contentFields,
  start_date: nullable(instantSchema),
  end_date: nullable(instantSchema),
  status: Type.Union(
    experimentStatuses.map(status => Type.Literal(status)),
    { description: '`paused`: running with its flag disabled.' },
  ),
  archived: Type.Boolean(),
  deleted: Type.Boolean(),
  created_at: instantSchema,
  updated_at: instantSchema,
  created_by: authorSchema,
})

/** @param flag may be deleted; null when there is no such flag. */
export function encodeExperiment(experiment: Experiment, flag: LinkedFlagJson | null, deleted = false): object {
  const content: JsonObject = {}
  for (const name of contentNames) content[name] = ownValue(experiment.content, name) ?? defaultContentOf(name)
  return {
    id: experiment.id,
    name: experiment.name,
    feature_flag_key: flag?.key ?? null,
    feature_flag: flag,
    ...content,
    start_date: experiment.startDateMs === null ? null : instant(experiment.startDateMs),
    end_date: experiment.endDateMs === null ? null : instant(experiment.endDateMs),
    status: statusOfExperiment(experiment, flag?.active === true),
    archived: experiment.archived,
    deleted,
    created_at: instant(experiment.createdAtMs),
    updated_at: instant(experiment.updatedAtMs),
    created_by: encodeAuthor(experiment.createdBy),
  }
}

function defaultContentOf(name: keyof typeof contentFields) {
  if (name === 'description') return ''
  if (name === 'metrics' || name === 'metrics_secondary' || name === 'secondary_metrics') return []
  return name === 'parameters' || name === 'filters' ? {} : null
}

/**
 * The members of the content in a body; undefined when it has none. Payloads are left out of `parameters`: only the flag
 * keeps them, which may have to encrypt them.
 */
export function decodeExperimentContent(body: UpdateExperimentJson): JsonObject | undefined {
  const content: JsonObject = {}
  const sent = body as unknown as JsonObject
  for (const name of contentNames) {
    const value = ownValue(sent, name)
    if (value !== undefined) setOwn(content, name, name === 'parameters' ? withoutPayloads(value) : value)
  }
  return Object.keys(content).length === 0 ? undefined : content
}

function withoutPayloads(parameters: JsonValue): JsonValue {
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
export interface SaidOfFlag {
  readonly filters?: JsonObject
  readonly ensureExperienceContinuity?: JsonValue
}

/**
 * `feature_flag` wins over `parameters`.
 * @param stored the parameters that an experiment has: sending the stored value back has no effect.
 */
export function decodeSaidOfFlag(body: UpdateExperimentJson, stored: JsonObject | null): SaidOfFlag {
  const sent = body as unknown as JsonObject
  const parameters = ownValue(sent, 'parameters')
  const readChangedParameter = (name: (typeof legacyFlagParameters)[number]) => {
    const value = isJsonObject(parameters) ? (ownValue(parameters, name) ?? undefined) : undefined
    const before = stored === null ? undefined : (ownValue(stored, name) ?? undefined)
    return value === undefined || isSameJson(value, before) ? undefined : value
  }
  const [variants, percentage, groupType, payloads, continuity] = legacyFlagParameters.map(readChangedParameter)
  const flag = ownValue(sent, 'feature_flag')
  const filters = isJsonObject(flag) ? ownValue(flag, 'filters') : undefined
  const ensures = (isJsonObject(flag) ? ownValue(flag, 'ensure_experience_continuity') : undefined) ?? continuity
  const decoded: JsonObject = {
    ...(Array.isArray(variants) && variants.length > 0 && { multivariate: { variants } }),
    ...(percentage !== undefined && { groups: [{ properties: [], rollout_percentage: percentage }] }),
    ...(groupType !== undefined && { aggregation_group_type_index: groupType }),
    ...(payloads !== undefined && !isSameJson(payloads, {}) && { payloads }),
  }
  if (isJsonObject(filters)) for (const [name, value] of Object.entries(filters)) setOwn(decoded, name, value)
  return {
    ...(Object.keys(decoded).length > 0 && { filters: decoded }),
    ...(ensures !== undefined && { ensureExperienceContinuity: ensures }),
  }
}
