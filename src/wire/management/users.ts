// `users/@me` and the organization, for PostHog's scripts: the "user" is the person who signed in or the personal API key,
// with the ids that their writes store as their author, and an instance is one organization.

import Type, { type Static } from 'typebox'
import { authorFields } from './author.ts'
import { nullable, uuidSchema } from './shapes.ts'

export const projectSummarySchema = Type.Object({
  id: Type.Integer(),
  uuid: uuidSchema,
  organization: uuidSchema,
  name: Type.String(),
  api_token: Type.String(),
  timezone: Type.String(),
})
export type ProjectSummaryJson = Static<typeof projectSummarySchema>

export const organizationSchema = Type.Object({
  id: uuidSchema,
  name: Type.String(),
  slug: Type.String(),
  projects: Type.Array(projectSummarySchema),
  teams: Type.Array(projectSummarySchema),
})
export type OrganizationJson = Static<typeof organizationSchema>

export const userSchema = Type.Object({
  ...authorFields,
  distinct_id: Type.String({ description: 'Id of the user or personal API key; used as distinct id in `my_flags`.' }),
  is_staff: Type.Boolean(),
  team: nullable(projectSummarySchema),
  organization: organizationSchema,
  organizations: Type.Array(Type.Object({ id: uuidSchema, name: Type.String(), slug: Type.String() })),
})
export type UserJson = Static<typeof userSchema>
