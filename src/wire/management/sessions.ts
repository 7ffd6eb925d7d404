// Users, their sessions and their links, as the private API shows them.

import Type, { type Static } from 'typebox'
import { nameSchema, oneOf } from '#core/resource.ts'
import {
  computeSessionEndMs,
  type LinkPurpose,
  linkPurposes,
  type SignedIn,
  type SignInLink,
  sessionResource,
  signInLinkResource,
  type UserSession,
} from '#core/users/session.ts'
import { listScopesOfUser, passwordLength, type Role, roles, type User, userResource } from '#core/users/user.ts'
import { buildItemSchema, encodeItem } from './resource-json.ts'
import { formatInstant, instantSchema, nullable, uuidSchema } from './shapes.ts'
import { type ProjectSummaryJson, projectSummarySchema } from './users.ts'

const email = Type.String({ maxLength: 254 })
const name = Type.Unsafe<string>(nameSchema(200))
const role = Type.Unsafe<Role>(oneOf(roles))
const seesPersons = Type.Boolean({
  description: 'Whether a viewer may see persons, events and recordings; default true.',
})
/** Longer texts are refused as passwords are, so that the error does not depend on the schema. */
const password = Type.String({
  maxLength: 2_000,
  description: `${passwordLength.min} to ${passwordLength.max} characters.`,
})
const token = Type.String({ maxLength: 200, description: 'The 43 characters after `#` in the link.' })

export const accountSchema = buildItemSchema(userResource, { has_password: Type.Boolean() })

export function encodeAccount(user: User): object {
  return encodeItem(userResource, user, { has_password: user.hasPassword })
}

export const updateAccountSchema = Type.Partial(
  Type.Object({
    email,
    name,
    role,
    sees_persons: seesPersons,
    disabled: Type.Boolean({ description: 'A disabled user cannot sign in, and their sessions end.' }),
  }),
)

export const userSessionSchema = buildItemSchema(sessionResource, {
  ends_at: instantSchema,
  is_current: Type.Boolean({ description: 'Whether this request was sent with the session.' }),
})

export function encodeUserSession(session: UserSession, currentId: string | null): object {
  return encodeItem(sessionResource, session, {
    ends_at: formatInstant(computeSessionEndMs(session)),
    is_current: session.id === currentId,
  })
}

export const signInSchema = Type.Object({ email, password })
export const checkLinkSchema = Type.Object({ token })
export const spendLinkSchema = Type.Object({
  token,
  name: Type.Optional(name),
  email: Type.Optional(email),
  password: Type.Optional(password),
})
export const changeOwnUserSchema = Type.Partial(
  Type.Object({
    name,
    email,
    password,
    current_password: Type.String({ maxLength: 2_000, description: 'Needed for a new password or e-mail address.' }),
  }),
)

export const checkedLinkSchema = Type.Object({
  purpose: Type.Unsafe<LinkPurpose>(oneOf(linkPurposes)),
  email: nullable(Type.String()),
  name: Type.String(),
  role,
  is_new_user: Type.Boolean({ description: 'Whether posting the link creates a user.' }),
  has_password: Type.Boolean(),
  expires_at: instantSchema,
})

/** The user as they are now, or what the invitation says of them. */
export function encodeCheckedLink(link: SignInLink, user: User | null): Static<typeof checkedLinkSchema> {
  const { email, name, role } = user ?? link
  return {
    ...{ purpose: link.purpose, email, name, role, is_new_user: user === null },
    ...{ has_password: user?.hasPassword ?? false, expires_at: formatInstant(link.expiresAtMs) },
  }
}

export const signedInSchema = Type.Object({
  user: accountSchema,
  session: userSessionSchema,
  role,
  scopes: Type.Array(Type.String()),
  projects: Type.Array(projectSummarySchema),
  build: Type.String({ description: 'The version of Pennon.' }),
  sdk_url: Type.String({ description: 'The host that SDKs are given.' }),
})

export interface InstanceOfSession {
  readonly projects: readonly ProjectSummaryJson[]
  readonly build: string
  readonly sdkUrl: string
}

export function encodeSignedIn({ user, session }: SignedIn, { projects, build, sdkUrl }: InstanceOfSession): object {
  return {
    ...{ user: encodeAccount(user), session: encodeUserSession(session, session.id) },
    ...{ role: user.role, scopes: listScopesOfUser(user), projects, build, sdk_url: sdkUrl },
  }
}

export const inviteSchema = Type.Object({
  role,
  email: Type.Optional(nullable(email)),
  name: Type.Optional(name),
  sees_persons: Type.Optional(seesPersons),
})

export const invitationSchema = buildItemSchema(signInLinkResource, {})

export function encodeInvitation(link: SignInLink): object {
  return encodeItem(signInLinkResource, link, {})
}

export const newLinkSchema = Type.Object({
  id: uuidSchema,
  link: Type.String({ description: 'Shown only once. Pass it on; it works once.' }),
  expires_at: instantSchema,
})
