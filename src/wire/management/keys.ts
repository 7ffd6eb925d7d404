// Personal API keys. The key itself (`value`) is shown once, in the answer that creates it.

import Type, { type Static } from 'typebox'
import { idSchema, instant, instantSchema, nullable } from './shapes.ts'

export const personalKeySchema = Type.Object({
  id: Type.String(),
  label: Type.String(),
  scopes: Type.Array(Type.String()),
  scoped_teams: Type.Array(Type.Integer()),
  scoped_organizations: Type.Array(Type.String()),
  created_at: instantSchema,
  last_used_at: nullable(instantSchema),
})
export type PersonalKeyJson = Static<typeof personalKeySchema>

export const createdPersonalKeySchema = Type.Object({
  ...personalKeySchema.properties,
  value: Type.String({ description: 'The key itself, returned only once.' }),
})

export const createPersonalKeySchema = Type.Object({
  label: Type.String({ minLength: 1, maxLength: 200 }),
  scopes: Type.Array(Type.String({ maxLength: 100 }), {
    maxItems: 100,
    description: '["*"] for all, or a list such as ["feature_flag:read", "project:write"]. Write includes read.',
  }),
  scoped_teams: Type.Optional(
    nullable(
      Type.Array(idSchema, {
        maxItems: 1_000,
        description: 'Ids of the projects the key is limited to; empty or null: all projects.',
      }),
    ),
  ),
})

export function encodePersonalKey(key: {
  readonly id: string
  readonly label: string
  readonly scopes: readonly string[]
  readonly scopedProjectIds: readonly number[]
  readonly createdAtMs: number
  readonly lastUsedAtMs: number | null
}): PersonalKeyJson {
  return {
    id: key.id,
    label: key.label,
    scopes: [...key.scopes],
    scoped_teams: [...key.scopedProjectIds],
    scoped_organizations: [],
    created_at: instant(key.createdAtMs),
    last_used_at: key.lastUsedAtMs === null ? null : instant(key.lastUsedAtMs),
  }
}
