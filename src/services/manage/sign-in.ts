// Signs people in, by a link or by e-mail and password, and changes what is their own. Every attempt is counted in the state
// before it is checked, so that all fronts count together.

import { createHash } from 'node:crypto'
import type { Change } from '#core/author.ts'
import { err, ok, type Result } from '#core/result.ts'
import {
  findLinkProblem,
  type LinkProblem,
  type SignedIn,
  type SignInLink,
  userAgentCharsMax,
} from '#core/users/session.ts'
import {
  isUsablePassword,
  normalizeEmail,
  normalizePassword,
  passwordLength,
  toUserAuthor,
  type User,
} from '#core/users/user.ts'
import type { Clock } from '#ports/clock.ts'
import type {
  AttemptKeys,
  NewSession,
  SessionStore,
  SignInAttemptStore,
  SignInLinkStore,
  UserPatch,
  UserStore,
} from '#ports/state/user-store.ts'
import type { RandomBytes } from './generate-key.ts'
import { type Passwords, PasswordsBusyError } from './passwords.ts'
import { hashSecret } from './secret-digests.ts'
import { generateToken, type SessionCheck } from './session-check.ts'

export interface SignInDeps {
  readonly management: UserStore & SessionStore & SignInLinkStore & SignInAttemptStore
  readonly sessionCheck: Pick<SessionCheck, 'forget'>
  readonly passwords: Passwords
  readonly clock: Clock
  readonly newUuid: () => string
  readonly randomBytes: RandomBytes
}

/** Where a request comes from. */
export interface SignInOrigin {
  /** The client's address, as the activity log shows it. */
  readonly address: string
  /** What counts as one sender of attempts. */
  readonly network: string
  readonly userAgent: string
}

/** A session with its secret, which is shown only here. */
export interface NewSignIn extends SignedIn {
  readonly secret: string
}

export type Throttled = { readonly kind: 'throttled'; readonly retryAfterMs: number }
export type OwnFieldRefusal = { readonly kind: 'invalid_email' | 'invalid_password' }
export type SignInRefusal = Throttled | { readonly kind: 'wrong_credentials' }
export type LinkRefusal =
  | Throttled
  | OwnFieldRefusal
  | { readonly kind: 'link'; readonly problem: LinkProblem }
  | { readonly kind: 'email_taken' | 'user_disabled' | 'password_required' }

/** An unknown address takes as long as a known one, and is refused with the same answer. */
export function signIn(
  deps: SignInDeps,
  { email, password }: { readonly email: string; readonly password: string },
  origin: SignInOrigin,
): Promise<Result<NewSignIn, SignInRefusal>> {
  return refuseWhenBusy(deps, async () => {
    const { management, passwords, clock } = deps
    const known = normalizeEmail(email)
    const accountKey = hashAccount(known ?? email)
    const keys = { account: accountKey, address: origin.network }
    const throttled = await countAttempt(deps, keys)
    if (throttled !== null) return err(throttled)
    const user = known === null ? null : await management.findUserByEmail(known)
    const hash = await management.findPasswordHash(user?.id ?? '')
    // A shorter password than new ones may have is checked: the limit may have been lower when it was set.
    const { length } = normalizePassword(password)
    const isRight = length <= passwordLength.max && (await passwords.matches(password, hash))
    if (!isRight || user === null || user.isDisabled || hash === null) {
      const change = { by: { id: null, label: 'Sign-in' }, atMs: clock.nowMs() }
      await management.recordFailedSignIn({ accountKey, user, address: origin.address }, change)
      return err({ kind: 'wrong_credentials' })
    }
    if (passwords.isOutdated(hash)) {
      const patch: UserPatch = { passwordHash: await passwords.hash(password), isSamePassword: true }
      await management.updateUser(user.id, patch, createOwnChange(deps, user))
    }
    await management.forgetSignInAttempt(keys)
    const started = await startSession(deps, user, origin)
    return started.ok ? started : err({ kind: 'wrong_credentials' })
  })
}

/** What a link is for, without using it up: mail scanners open links. */
export async function checkLink(
  deps: SignInDeps,
  token: string,
  origin: SignInOrigin,
): Promise<Result<{ link: SignInLink; user: User | null }, LinkRefusal>> {
  const found = await findUsableLink(deps, token, origin)
  if (!found.ok) return found
  const { userId } = found.value
  return ok({ link: found.value, user: userId === null ? null : await deps.management.findUser(userId) })
}

/** Uses up the link: creates or changes its user, and starts a session. */
export function spendLink(
  deps: SignInDeps,
  token: string,
  given: { readonly name?: string; readonly email?: string; readonly password?: string },
  origin: SignInOrigin,
): Promise<Result<NewSignIn, LinkRefusal>> {
  return refuseWhenBusy(deps, async () => {
    const { management, passwords, clock } = deps
    const fields = readOwnFields(given)
    if (!fields.ok) return fields
    const found = await findUsableLink(deps, token, origin)
    if (!found.ok) return found
    const { password, ...shown } = fields.value
    if (found.value.purpose === 'reset' && password === undefined) return err({ kind: 'password_required' })
    const passwordHash = password === undefined ? undefined : await passwords.hash(password)
    const { session, secret } = makeSession(deps, origin)
    const spent = await management.spendSignInLink(
      {
        tokenHash: hashSecret(token),
        newUserId: deps.newUuid(),
        given: { ...shown, ...(passwordHash !== undefined && { passwordHash }) },
        session,
      },
      clock.nowMs(),
    )
    if (!spent.ok) {
      const { error } = spent
      return err(
        error === 'email_taken' || error === 'user_disabled' ? { kind: error } : { kind: 'link', problem: error },
      )
    }
    deps.sessionCheck.forget()
    return ok({ ...spent.value, secret })
  })
}

export type OwnRefusal =
  | Throttled
  | OwnFieldRefusal
  | { readonly kind: 'email_taken' | 'not_found' | 'current_password_required' | 'wrong_password' }

/**
 * Changes the caller's own name, address or password. A new password or address needs the present password, if there is
 * one. A new password ends all sessions and starts another one, which is returned.
 */
export function changeOwnUser(
  deps: SignInDeps,
  userId: string,
  given: {
    readonly name?: string
    readonly email?: string
    readonly password?: string
    readonly currentPassword?: string
  },
  origin: SignInOrigin,
): Promise<Result<{ user: User; renewed: NewSignIn | null }, OwnRefusal>> {
  return refuseWhenBusy<{ user: User; renewed: NewSignIn | null }, OwnRefusal>(deps, async () => {
    const { management, passwords } = deps
    const fields = readOwnFields(given)
    if (!fields.ok) return fields
    const { password, ...shown } = fields.value
    const current = await management.findUser(userId)
    if (current === null) return err({ kind: 'not_found' })
    const needsPassword = password !== undefined || (shown.email !== undefined && shown.email !== current.email)
    if (needsPassword && current.hasPassword) {
      const refused = await checkCurrentPassword(deps, current, given.currentPassword, origin)
      if (refused !== null) return err(refused)
    }
    const patch = { ...shown, ...(password !== undefined && { passwordHash: await passwords.hash(password) }) }
    const updated = await management.updateUser(userId, patch, createOwnChange(deps, current))
    deps.sessionCheck.forget()
    if (!updated.ok) return err({ kind: updated.error === 'email_taken' ? 'email_taken' : 'not_found' })
    if (password === undefined) return ok({ user: updated.value, renewed: null })
    const renewed = await startSession(deps, updated.value, origin)
    return renewed.ok ? ok({ user: updated.value, renewed: renewed.value }) : err({ kind: 'not_found' })
  })
}

/** @returns how many sessions ended; they end here at once, and in other processes as soon as they follow the revision. */
export async function endSessions(
  deps: Pick<SignInDeps, 'sessionCheck'> & { readonly management: Pick<SessionStore, 'endSessions'> },
  userId: string,
  which: { readonly only: string } | { readonly except: string | null },
  change: Change,
): Promise<number> {
  const count = await deps.management.endSessions(userId, which, change)
  deps.sessionCheck.forget()
  return count
}

async function checkCurrentPassword(
  deps: SignInDeps,
  user: User,
  password: string | undefined,
  origin: SignInOrigin,
): Promise<OwnRefusal | null> {
  if (password === undefined) return { kind: 'current_password_required' }
  const { management, passwords, clock } = deps
  const accountKey = hashAccount(user.email ?? user.id)
  const keys = { account: accountKey, address: origin.network }
  const throttled = await countAttempt(deps, keys)
  if (throttled !== null) return throttled
  if (!(await passwords.matches(password, await management.findPasswordHash(user.id)))) {
    const change = { by: toUserAuthor(user), atMs: clock.nowMs() }
    await management.recordFailedSignIn({ accountKey, user, address: origin.address }, change)
    return { kind: 'wrong_password' }
  }
  await management.forgetSignInAttempt(keys)
  return null
}

async function findUsableLink(
  deps: SignInDeps,
  token: string,
  { network }: SignInOrigin,
): Promise<Result<SignInLink, LinkRefusal>> {
  const keys = { address: network }
  const throttled = await countAttempt(deps, keys)
  if (throttled !== null) return err(throttled)
  const link = await deps.management.findSignInLink(hashSecret(token))
  const problem = findLinkProblem(link, deps.clock.nowMs())
  if (link === null || problem !== null) return err({ kind: 'link', problem: problem ?? 'unknown' })
  await deps.management.forgetSignInAttempt(keys)
  return ok(link)
}

async function countAttempt({ management, clock }: SignInDeps, keys: AttemptKeys): Promise<Throttled | null> {
  const retryAfterMs = await management.countSignInAttempt(keys, clock.nowMs())
  return retryAfterMs === null ? null : { kind: 'throttled', retryAfterMs }
}

/** Refuses before anything is read or written, so that a flood of attempts costs the state nothing. */
async function refuseWhenBusy<T, E>(
  { passwords }: SignInDeps,
  work: () => Promise<Result<T, E | Throttled>>,
): Promise<Result<T, E | Throttled>> {
  const busy: Throttled = { kind: 'throttled', retryAfterMs: 1_000 }
  if (passwords.isBusy()) return err(busy)
  try {
    return await work()
  } catch (error) {
    if (error instanceof PasswordsBusyError) return err(busy)
    throw error
  }
}

function readOwnFields(given: {
  readonly name?: string
  readonly email?: string
  readonly password?: string
}): Result<{ name?: string; email?: string; password?: string }, OwnFieldRefusal> {
  const fields: { name?: string; email?: string; password?: string } = {}
  if (given.name !== undefined) fields.name = given.name.trim()
  if (given.email !== undefined) {
    const email = normalizeEmail(given.email)
    if (email === null) return err({ kind: 'invalid_email' })
    fields.email = email
  }
  if (given.password !== undefined) {
    if (!isUsablePassword(given.password)) return err({ kind: 'invalid_password' })
    fields.password = given.password
  }
  return ok(fields)
}

async function startSession(
  deps: SignInDeps,
  user: User,
  origin: SignInOrigin,
): Promise<Result<NewSignIn, 'not_found'>> {
  const { session, secret } = makeSession(deps, origin)
  const started = await deps.management.createSession(user.id, session, createOwnChange(deps, user))
  return started.ok ? ok({ ...started.value, secret }) : started
}

function makeSession(deps: SignInDeps, { address, userAgent }: SignInOrigin): { session: NewSession; secret: string } {
  const secret = generateToken(deps.randomBytes)
  const session = { id: deps.newUuid(), secretHash: hashSecret(secret), address }
  return { session: { ...session, userAgent: userAgent.slice(0, userAgentCharsMax) }, secret }
}

function createOwnChange({ clock }: SignInDeps, user: User): Change {
  return { by: toUserAuthor(user), atMs: clock.nowMs() }
}

/** Attempts are counted on what was typed, known or not, and the state should not keep what somebody typed by mistake. */
function hashAccount(typed: string): string {
  return createHash('sha256').update(typed.trim().toLowerCase()).digest('hex')
}
