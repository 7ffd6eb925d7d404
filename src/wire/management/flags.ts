// Feature flags, their versions and what changed between two of them.

import Type, { type Static } from 'typebox'
import type { EarlyAccessFeature } from '#core/early-access/early-access-feature.ts'
import { redactPayloads } from '#core/flags/definitions/encrypted-payloads.ts'
import type { Flag, FlagFields } from '#core/flags/definitions/flag.ts'
import { flagKeyLengthMax } from '#core/flags/definitions/validate-flag.ts'
import type { JsonChange } from '#core/json-diff.ts'
import { authorSchema, encodeAuthor } from './author.ts'
import { instant, instantSchema, jsonObjectSchema, nullable } from './shapes.ts'

const filtersDescription =
  'Condition sets in `groups` (each: `properties`, `rollout_percentage`, `variant`), `multivariate.variants`, ' +
  '`payloads`, `aggregation_group_type_index` and more. Unknown fields are kept.'
const label = Type.String({ maxLength: 255 })
const labels = Type.Array(label, { maxItems: 100 })

export const flagSchema = Type.Object({
  id: Type.Integer(),
  key: Type.String(),
  name: Type.String(),
  filters: jsonObjectSchema(filtersDescription),
  active: Type.Boolean(),
  deleted: Type.Boolean(),
  version: Type.Integer(),
  ensure_experience_continuity: Type.Boolean(),
  bucketing_identifier: nullable(Type.String()),
  evaluation_runtime: Type.String(),
  evaluation_contexts: Type.Array(Type.String()),
  has_encrypted_payloads: Type.Boolean(),
  is_remote_configuration: Type.Boolean(),
  tags: Type.Array(Type.String()),
  created_at: instantSchema,
  updated_at: instantSchema,
  created_by: authorSchema,
  experiment_set: Type.Array(Type.Integer()),
  features: Type.Array(jsonObjectSchema()),
})
export type FlagJson = Static<typeof flagSchema>

export const flagWarningSchema = Type.Object({ attr: Type.String(), code: Type.String(), detail: Type.String() })

/** An answer to a write; `warnings` only with `skip_validation`. */
export const writtenFlagSchema = Type.Object({
  ...flagSchema.properties,
  warnings: Type.Optional(Type.Array(flagWarningSchema)),
})

const optionalFlagFields = {
  name: Type.Optional(nullable(Type.String({ maxLength: 10_000 }))),
  filters: Type.Optional(jsonObjectSchema(filtersDescription)),
  active: Type.Optional(Type.Boolean()),
  deleted: Type.Optional(Type.Boolean()),
  ensure_experience_continuity: Type.Optional(nullable(Type.Boolean())),
  bucketing_identifier: Type.Optional(nullable(Type.String({ maxLength: 100 }))),
  evaluation_runtime: Type.Optional(nullable(Type.String({ maxLength: 100 }))),
  evaluation_contexts: Type.Optional(nullable(labels)),
  evaluation_tags: Type.Optional(
    Type.Union([labels, Type.Null()], { description: 'Older name of `evaluation_contexts`.' }),
  ),
  has_encrypted_payloads: Type.Optional(nullable(Type.Boolean())),
  is_remote_configuration: Type.Optional(nullable(Type.Boolean())),
  tags: Type.Optional(nullable(labels)),
  rollout_percentage: Type.Optional(
    Type.Unknown({
      description: 'Of definitions older than `filters.groups`: becomes the percentage of their one set.',
    }),
  ),
}
const key = Type.String({ minLength: 1, maxLength: 4 * flagKeyLengthMax })

export const createFlagSchema = Type.Object({ key, ...optionalFlagFields })
export const updateFlagSchema = Type.Object({
  key: Type.Optional(key),
  ...optionalFlagFields,
  version: Type.Optional(
    nullable(Type.Integer({ description: 'The version that was edited; when it is no longer current: 409.' })),
  ),
})
export type UpdateFlagJson = Static<typeof updateFlagSchema>

/** What a flag belongs to. */
export interface FlagOwnersToShow {
  readonly experimentIds: readonly number[]
  readonly features: readonly EarlyAccessFeature[]
}

const noOwners: FlagOwnersToShow = { experimentIds: [], features: [] }

export function encodeFlag(flag: Flag, owners: FlagOwnersToShow = noOwners): FlagJson {
  return {
    id: flag.id,
    key: flag.key,
    name: flag.name,
    filters: flag.hasEncryptedPayloads ? redactPayloads(flag.filters) : flag.filters,
    active: flag.active,
    deleted: flag.deleted,
    version: flag.version,
    ensure_experience_continuity: flag.ensureExperienceContinuity,
    bucketing_identifier: flag.bucketingIdentifier,
    evaluation_runtime: flag.evaluationRuntime,
    evaluation_contexts: [...flag.evaluationContexts],
    has_encrypted_payloads: flag.hasEncryptedPayloads,
    is_remote_configuration: flag.isRemoteConfiguration,
    tags: [...flag.tags],
    created_at: instant(flag.createdAtMs),
    updated_at: instant(flag.updatedAtMs),
    created_by: encodeAuthor(flag.createdBy),
    experiment_set: [...owners.experimentIds],
    features: owners.features.map(({ id, name, description, stage, documentationUrl, payload }) => ({
      ...{ id, name, description, stage, payload },
      documentationUrl,
      flagKey: flag.key,
    })),
  }
}

/** The fields of a body that are there, in the core's names; null where PostHog allows it means the default. */
export function decodeFlag(body: UpdateFlagJson): FlagFields {
  const contexts = body.evaluation_contexts === undefined ? body.evaluation_tags : body.evaluation_contexts
  return {
    ...(body.key === undefined ? {} : { key: body.key }),
    ...(body.name === undefined ? {} : { name: body.name ?? '' }),
    ...(body.filters === undefined ? {} : { filters: body.filters }),
    ...(body.active === undefined ? {} : { active: body.active }),
    ...(body.deleted === undefined ? {} : { deleted: body.deleted }),
    ...(body.ensure_experience_continuity === undefined
      ? {}
      : { ensureExperienceContinuity: body.ensure_experience_continuity ?? false }),
    ...(body.bucketing_identifier === undefined ? {} : { bucketingIdentifier: body.bucketing_identifier }),
    ...(body.evaluation_runtime === undefined ? {} : { evaluationRuntime: body.evaluation_runtime ?? 'all' }),
    ...(contexts === undefined ? {} : { evaluationContexts: contexts ?? [] }),
    ...(body.has_encrypted_payloads === undefined
      ? {}
      : { hasEncryptedPayloads: body.has_encrypted_payloads ?? false }),
    ...(body.is_remote_configuration === undefined
      ? {}
      : { isRemoteConfiguration: body.is_remote_configuration ?? false }),
    ...(body.tags === undefined ? {} : { tags: body.tags ?? [] }),
  }
}

export const flagVersionSchema = Type.Object({
  version: Type.Integer(),
  changed_by: authorSchema,
  created_at: instantSchema,
  flag: flagSchema,
})
export type FlagVersionJson = Static<typeof flagVersionSchema>

/** @param hidesPayloads the flag is encrypted by now, so what it held in plain text before is not shown either. */
export function encodeFlagVersion(
  version: {
    readonly version: number
    readonly flag: Flag
    readonly changedBy: string | null
    readonly createdAtMs: number
  },
  hidesPayloads: boolean,
): FlagVersionJson {
  return {
    version: version.version,
    changed_by: encodeAuthor(version.changedBy),
    created_at: instant(version.createdAtMs),
    flag: encodeFlag(hidesPayloads ? withoutPayloads(version.flag) : version.flag),
  }
}

/** The flag without what its payloads hold. */
export function withoutPayloads(flag: Flag): Flag {
  return { ...flag, filters: redactPayloads(flag.filters) }
}

const changeSchema = Type.Object({
  path: Type.String({ description: 'Keys and list indexes joined by dots.' }),
  action: Type.Union([Type.Literal('created'), Type.Literal('changed'), Type.Literal('deleted')]),
  before: Type.Unknown(),
  after: Type.Unknown(),
})
export const flagDiffSchema = Type.Object({
  from: Type.Integer(),
  to: Type.Integer(),
  changes: Type.Array(changeSchema),
})
export interface FlagDiffJson {
  readonly from: number
  readonly to: number
  readonly changes: readonly JsonChange[]
}

export const flagActivitySchema = Type.Object({
  user: authorSchema,
  activity: Type.Union([Type.Literal('created'), Type.Literal('updated'), Type.Literal('deleted')]),
  scope: Type.Literal('FeatureFlag'),
  item_id: Type.String(),
  detail: Type.Object({
    name: Type.String(),
    version: Type.Integer(),
    changes: Type.Array(
      Type.Object({
        ...changeSchema.properties,
        type: Type.Literal('FeatureFlag'),
        field: Type.String({ description: 'The first part of `path`.' }),
      }),
    ),
  }),
  created_at: instantSchema,
})
export type FlagActivityJson = Static<typeof flagActivitySchema>
