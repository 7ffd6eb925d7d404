// Sessions of people who signed in, and the links that sign a person in once.

import { booleanField, choiceField, type ItemOf, instantField, nullable, textField, uuidField } from '../resource.ts'
import { roles, type User } from './user.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

export const sessionResource = {
  table: 'user_session',
  required: [],
  fields: {
    id: uuidField('id'),
    userId: textField('user_id', { isShown: false }),
    /** Both as the sign-in request had them. */
    userAgent: textField('user_agent', { isLogged: true }),
    address: textField('address', { isLogged: true }),
    createdAtMs: instantField('created_at'),
    lastSeenAtMs: instantField('last_seen_at'),
  },
} as const

export type UserSession = ItemOf<typeof sessionResource>

/** A session with its user, as a request with its cookie finds it. */
export interface SignedIn {
  readonly session: UserSession
  readonly user: User
}

export const userAgentCharsMax = 300

/** A session ends 7 days after its last request, and 30 days after the sign-in. */
export const sessionLimits = { idleMs: 7 * dayMs, longestMs: 30 * dayMs } as const

/** After the clock was set back, a session from the future must not last longer than others. */
export const sessionFutureMaxMs = hourMs

export function hasSessionEnded(session: UserSession, nowMs: number): boolean {
  return session.createdAtMs > nowMs + sessionFutureMaxMs || computeSessionEndMs(session) <= nowMs
}

export function computeSessionEndMs({ createdAtMs, lastSeenAtMs }: UserSession): number {
  return Math.min(createdAtMs + sessionLimits.longestMs, lastSeenAtMs + sessionLimits.idleMs)
}

/**
 * `welcome`: from the first start or from `pennon sign-in-link`; `invitation`: from an admin, for a new user; `reset`: from
 * an admin, for a user who forgot their password.
 */
export const linkPurposes = ['welcome', 'invitation', 'reset'] as const
export type LinkPurpose = (typeof linkPurposes)[number]

export const linkLifetimesMs: Readonly<Record<LinkPurpose, number>> = {
  welcome: dayMs,
  invitation: 7 * dayMs,
  reset: hourMs,
}

export const signInLinkResource = {
  table: 'sign_in_link',
  required: [],
  fields: {
    id: uuidField('id'),
    purpose: choiceField('purpose', linkPurposes),
    /** The user whom the link signs in; null when it creates a user, who gets the values of the next four fields. */
    userId: nullable(textField('user_id', { isShown: false })),
    role: choiceField('role', roles),
    seesPersons: booleanField('sees_persons', { isLogged: true }),
    email: nullable(textField('email', { isLogged: true })),
    name: textField('name', { isLogged: true }),
    createdAtMs: instantField('created_at'),
    expiresAtMs: instantField('expires_at', { isLogged: true }),
    usedAtMs: nullable(instantField('used_at', { isShown: false })),
  },
} as const

export type SignInLink = ItemOf<typeof signInLinkResource>

export const linkProblems = ['unknown', 'used', 'expired'] as const
export type LinkProblem = (typeof linkProblems)[number]

/** Why a link cannot be used; null when it can. */
export function findLinkProblem(link: SignInLink | null, nowMs: number): LinkProblem | null {
  if (link === null) return 'unknown'
  if (link.usedAtMs !== null) return 'used'
  return link.expiresAtMs <= nowMs ? 'expired' : null
}
