// Feature flags, their versions, and the changes between two versions.

import Type, { type Static, type TSchema } from 'typebox'
import type { Author } from '#core/author.ts'
import { redactEncryptedPayloads, redactPayloads } from '#core/flags/definitions/encrypted-payloads.ts'
import { type Flag, type FlagFields, flagDefaults, type WritableFlag } from '#core/flags/definitions/flag.ts'
import { type FlagStatus, flagStatuses, statusOfFlag } from '#core/flags/definitions/flag-status.ts'
import { flagKeyLengthMax } from '#core/flags/definitions/validate-flag.ts'
import type { JsonChange } from '#core/json-diff.ts'
import { omitUndefined } from '#core/omit-undefined.ts'
import type { EarlyAccessFeature } from '#core/resources/early-access-feature.ts'
import type { WireName } from '#wire/wire-name.ts'
import { changeSchema } from '../activity.ts'
import { authorSchema, encodeAuthor } from '../author.ts'
import { formatInstant, instantSchema, jsonObjectSchema, nullable } from '../shapes.ts'

const filtersDescription =
  'Condition sets in `groups` (each: `properties`, `rollout_percentage`, `variant`), `multivariate.variants`, ' +
  '`payloads`, `aggregation_group_type_index` and more; unknown fields are stored. Or, with `version: 2`, only `return_type`, ' +
  '`default_value` and `rules`: a write then replaces the whole document.'
const label = Type.String({ maxLength: 255 })
const labels = Type.Array(label, { maxItems: 100 })

/** An object with schemas of at least these fields. */
type SchemasOf<Name extends string> = Record<string, TSchema> & Record<WireName<Name>, TSchema>

/** A flag as it was written, in whichever version. */
export const flagDefinitionSchema = Type.Object({
  id: Type.Integer(),
  key: Type.String(),
  name: Type.String(),
  filters: jsonObjectSchema(filtersDescription),
  active: Type.Boolean(),
  archived: Type.Boolean({ description: 'Archived: inactive and hidden from lists by default.' }),
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
} satisfies SchemasOf<keyof WritableFlag>)
export type FlagDefinitionJson = Static<typeof flagDefinitionSchema>

const statusSchema = Type.Unsafe<FlagStatus>({ type: 'string', enum: [...flagStatuses] })

/** A flag with its known use. */
export const flagSchema = Type.Object({
  ...flagDefinitionSchema.properties,
  last_called_at: nullable(instantSchema),
  status: statusSchema,
})
export type FlagJson = Static<typeof flagSchema>

export const flagStatusSchema = Type.Object({
  status: statusSchema,
  reason: Type.String({ description: 'Human-readable explanation.' }),
})

export const flagWarningSchema = Type.Object({ attr: Type.String(), code: Type.String(), detail: Type.String() })

/** The answer to a write; `warnings` only with `skip_validation`. */
export const writtenFlagSchema = Type.Object({
  ...flagSchema.properties,
  warnings: Type.Optional(Type.Array(flagWarningSchema)),
})

const optionalFlagFields = {
  name: Type.Optional(nullable(Type.String({ maxLength: 10_000 }))),
  description: Type.Optional(
    nullable(
      Type.String({
        maxLength: 10_000,
        description: 'Alias of `name`, used by PostHog tools. `name` takes precedence.',
      }),
    ),
  ),
  filters: Type.Optional(jsonObjectSchema(filtersDescription)),
  active: Type.Optional(Type.Boolean()),
  archived: Type.Optional(
    nullable(Type.Boolean({ description: 'true also disables the flag. null leaves it unchanged.' })),
  ),
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
      description: 'For definitions older than `filters.groups`: rollout percentage of the single condition set.',
    }),
  ),
} satisfies SchemasOf<Exclude<keyof WritableFlag, 'key'>>
const key = Type.String({ minLength: 1, maxLength: 4 * flagKeyLengthMax })

export const createFlagSchema = Type.Object({ key, ...optionalFlagFields })
export const updateFlagSchema = Type.Object({
  key: Type.Optional(key),
  ...optionalFlagFields,
  version: Type.Optional(
    nullable(Type.Integer({ description: 'Version the change is based on. 409 if it is no longer current.' })),
  ),
})
export type UpdateFlagJson = Static<typeof updateFlagSchema>

/** The experiments and early access features that a flag belongs to, to be shown with it. */
export interface FlagOwnersToShow {
  readonly experimentIds: readonly number[]
  readonly features: readonly EarlyAccessFeature[]
}

const noOwners: FlagOwnersToShow = { experimentIds: [], features: [] }

export function encodeFlag(flag: Flag, owners: FlagOwnersToShow = noOwners): FlagDefinitionJson {
  return {
    id: flag.id,
    key: flag.key,
    name: flag.name,
    filters: redactEncryptedPayloads(flag),
    active: flag.active,
    archived: flag.archived,
    deleted: flag.deleted,
    version: flag.version,
    ensure_experience_continuity: flag.ensureExperienceContinuity,
    bucketing_identifier: flag.bucketingIdentifier,
    evaluation_runtime: flag.evaluationRuntime,
    evaluation_contexts: [...flag.evaluationContexts],
    has_encrypted_payloads: flag.hasEncryptedPayloads,
    is_remote_configuration: flag.isRemoteConfiguration,
    tags: [...flag.tags],
    created_at: formatInstant(flag.createdAtMs),
    updated_at: formatInstant(flag.updatedAtMs),
    created_by: encodeAuthor(flag.createdBy),
    experiment_set: [...owners.experimentIds],
    features: owners.features.map(({ id, name, description, stage, documentationUrl, payload }) => ({
      ...{ id, name, description, stage, payload },
      documentationUrl,
      flagKey: flag.key,
    })),
  }
}

/** @param lastCalledAtMs null when no call is known. */
export function encodeFlagWithStatus(
  flag: Flag,
  owners: FlagOwnersToShow | undefined,
  lastCalledAtMs: number | null,
  nowMs: number,
): FlagJson {
  return {
    ...encodeFlag(flag, owners),
    last_called_at: lastCalledAtMs === null ? null : formatInstant(lastCalledAtMs),
    status: statusOfFlag(flag, lastCalledAtMs, nowMs).status,
  }
}

/** The fields that a body has, under the core's names; null, where PostHog allows it, means the default. */
export function decodeFlag(body: UpdateFlagJson): FlagFields {
  const sent: { readonly [Name in keyof WritableFlag]: WritableFlag[Name] | null | undefined } = {
    key: body.key,
    name: body.name === undefined ? body.description : body.name,
    filters: body.filters,
    active: body.active,
    archived: body.archived ?? undefined,
    deleted: body.deleted,
    ensureExperienceContinuity: body.ensure_experience_continuity,
    bucketingIdentifier: body.bucketing_identifier,
    evaluationRuntime: body.evaluation_runtime,
    evaluationContexts: body.evaluation_contexts === undefined ? body.evaluation_tags : body.evaluation_contexts,
    hasEncryptedPayloads: body.has_encrypted_payloads,
    isRemoteConfiguration: body.is_remote_configuration,
    tags: body.tags,
  }
  const defaults: FlagFields = flagDefaults
  const names = Object.keys(sent) as (keyof WritableFlag)[]
  return omitUndefined(Object.fromEntries(names.map(name => [name, sent[name] === null ? defaults[name] : sent[name]])))
}

export const flagVersionSchema = Type.Object({
  version: Type.Integer(),
  changed_by: authorSchema,
  created_at: instantSchema,
  flag: flagDefinitionSchema,
})
export type FlagVersionJson = Static<typeof flagVersionSchema>

/** @param hidesPayloads the flag is encrypted now, so its earlier plain-text payloads are not shown either. */
export function encodeFlagVersion(
  version: {
    readonly version: number
    readonly flag: Flag
    readonly changedBy: Author | null
    readonly createdAtMs: number
  },
  hidesPayloads: boolean,
): FlagVersionJson {
  return {
    version: version.version,
    changed_by: encodeAuthor(version.changedBy),
    created_at: formatInstant(version.createdAtMs),
    flag: encodeFlag(hidesPayloads ? removePayloads(version.flag) : version.flag),
  }
}

/** The flag with its payloads redacted. */
export function removePayloads(flag: Flag): Flag {
  return { ...flag, filters: redactPayloads(flag.filters) }
}

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
        field: Type.String({ description: 'First part of `path`.' }),
      }),
    ),
  }),
  created_at: instantSchema,
})
export type FlagActivityJson = Static<typeof flagActivitySchema>
