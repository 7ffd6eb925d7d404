// Signs people in, by a link or by e-mail and password, and changes what is their own. Every attempt is counted in the state
// before a password is checked, so that all fronts count together.

import { createHash } from 'node:crypto'
import type { Author, Change } from '#core/author.ts'
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
  NewSession,
  SessionStore,
  SignInAttemptStore,
  SignInLinkStore,
  UserPatch,
  UserStore,
} from '#ports/state/user-store.ts'
import type { Logger } from '#telemetry/log.ts'
import type { RandomBytes } from './generate-key.ts'
import { type Hashing, type Passwords, PasswordsBusyError } from './passwords.ts'
import { hashSecret } from './secret-digests.ts'
import { generateToken, type SessionCheck } from './session-check.ts'
import type { SignInAttempts, Throttled } from './sign-in-attempts.ts'

const failureDelayMs = 100

export interface SignInDeps {
  readonly management: UserStore & SessionStore & SignInLinkStore & SignInAttemptStore
  readonly sessionCheck: Pick<SessionCheck, 'forget'>
  readonly passwords: Passwords
  readonly attempts: SignInAttempts
  readonly clock: Clock
  readonly logger: Logger
  readonly newUuid: () => string
  readonly randomBytes: RandomBytes
}

/** Where a request comes from. */
export interface SignInOrigin {
  /** The client's address, as the activity log shows it. */
  readonly address: string
  /** What counts as one sender of attempts. */
  readonly network: string
  /** The networks that may be one sender: they share turns when passwords are hashed. */
  readonly block: string
  readonly userAgent: string
}

/** A session with its secret, which is shown only here. */
export interface NewSignIn extends SignedIn {
  readonly secret: string
}

export type OwnFieldRefusal = { readonly kind: 'invalid_email' | 'invalid_password' }
export type SignInRefusal = Throttled | { readonly kind: 'wrong_credentials' }
export type LinkRefusal =
  | Throttled
  | OwnFieldRefusal
  | { readonly kind: 'link'; readonly problem: LinkProblem }
  | { readonly kind: 'email_taken' | 'user_disabled' | 'password_required' }

/** An unknown address takes as long as a known one, and is refused with the same answer. */
export async function signIn(
  deps: SignInDeps,
  { email, password }: { readonly email: string; readonly password: string },
  origin: SignInOrigin,
): Promise<Result<NewSignIn, SignInRefusal>> {
  const { management, passwords, attempts } = deps
  const throttled = await attempts.count('address', origin.network)
  if (throttled !== null) return err(throttled)
  return hashInTurn<NewSignIn, SignInRefusal>(deps, origin, async hashing => {
    const known = normalizeEmail(email)
    const user = await management.findUserByEmail(known ?? '')
    const waiting = await countGuess(deps, user ?? { typed: known ?? email }, origin)
    if (waiting !== null) return err(waiting)
    const stored = await management.findPasswordHash(user?.id ?? '')
    const isRight = await isRightPassword(hashing, password, stored)
    if (!isRight || user === null || user.isDisabled || stored === null) {
      if (user !== null) recordFailureLater(deps, user, origin, { id: null, label: 'Sign-in' })
      return err({ kind: 'wrong_credentials' })
    }
    const tooMany = await attempts.count('own', user.id)
    if (tooMany !== null) return err(tooMany)
    if (passwords.isOutdated(stored)) {
      const patch: UserPatch = { passwordHash: await hashing.hash(password), isSamePassword: true }
      await management.updateUser(user.id, patch, createOwnChange(deps, user), user.accessVersion)
    }
    await recordSuccess(deps, user, origin)
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
export async function spendLink(
  deps: SignInDeps,
  token: string,
  given: { readonly name?: string; readonly email?: string; readonly password?: string },
  origin: SignInOrigin,
): Promise<Result<NewSignIn, LinkRefusal>> {
  const fields = readOwnFields(given)
  if (!fields.ok) return fields
  const found = await findUsableLink(deps, token, origin)
  if (!found.ok) return found
  const { password, ...shown } = fields.value
  if (found.value.purpose === 'reset' && password === undefined) return err({ kind: 'password_required' })

  const spend = async (hashed: { readonly passwordHash?: string }): Promise<Result<NewSignIn, LinkRefusal>> => {
    const { session, secret } = makeSession(deps, origin)
    const spent = await deps.management.spendSignInLink(
      { tokenHash: hashSecret(token), newUserId: deps.newUuid(), given: { ...shown, ...hashed }, session },
      deps.clock.nowMs(),
    )
    if (!spent.ok) {
      const { error } = spent
      if (error === 'email_taken') {
        // Whether an address is taken can be guessed too.
        const throttled = await deps.attempts.count('address', origin.network)
        if (throttled !== null) return err(throttled)
      }
      return err(
        error === 'email_taken' || error === 'user_disabled' ? { kind: error } : { kind: 'link', problem: error },
      )
    }
    deps.sessionCheck.forget()
    await recordSuccess(deps, spent.value.user, origin)
    return ok({ ...spent.value, secret })
  }
  if (password === undefined) return spend({})
  return hashInTurn(deps, origin, async ({ hash }) => spend({ passwordHash: await hash(password) }))
}

export type OwnRefusal =
  | Throttled
  | OwnFieldRefusal
  | { readonly kind: 'email_taken' | 'not_found' | 'changed' | 'current_password_required' | 'wrong_password' }

/**
 * Changes the caller's own name, address or password. A new password or address needs the present password, if there is
 * one. A new password ends all sessions and starts another one, which is returned.
 */
export async function changeOwnUser(
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
  const { management, attempts } = deps
  const fields = readOwnFields(given)
  if (!fields.ok) return fields
  const { password, ...shown } = fields.value
  const current = await management.findUser(userId)
  if (current === null) return err({ kind: 'not_found' })
  const { name = current.name, email = current.email } = shown
  const isNewAccess = password !== undefined || email !== current.email
  if (!isNewAccess && name === current.name) return ok({ user: current, renewed: null })
  const isChecked = isNewAccess && current.hasPassword
  if (isChecked && given.currentPassword === undefined) return err({ kind: 'current_password_required' })
  const throttled =
    (await attempts.count('own', userId)) ?? (isNewAccess ? await attempts.count('address', origin.network) : null)
  if (throttled !== null) return err(throttled)

  const change = async (hashed: {
    readonly passwordHash?: string
  }): Promise<Result<{ user: User; renewed: NewSignIn | null }, OwnRefusal>> => {
    const own = createOwnChange(deps, current)
    const seen = isNewAccess ? current.accessVersion : null
    const updated = await management.updateUser(userId, { ...shown, ...hashed }, own, seen)
    deps.sessionCheck.forget()
    if (!updated.ok) return err({ kind: updated.error === 'last_admin' ? 'not_found' : updated.error })
    if (password === undefined) return ok({ user: updated.value, renewed: null })
    const renewed = await startSession(deps, updated.value, origin)
    return renewed.ok ? ok({ user: updated.value, renewed: renewed.value }) : err({ kind: 'not_found' })
  }
  if (!isChecked && password === undefined) return change({})
  return hashInTurn(deps, origin, async hashing => {
    const refused = isChecked
      ? await checkCurrentPassword(deps, hashing, current, given.currentPassword!, origin)
      : null
    if (refused !== null) return err(refused)
    return change(password === undefined ? {} : { passwordHash: await hashing.hash(password) })
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
  hashing: Hashing,
  user: User,
  password: string,
  origin: SignInOrigin,
): Promise<OwnRefusal | null> {
  const throttled = await countGuess(deps, user, origin)
  if (throttled !== null) return throttled
  if (await isRightPassword(hashing, password, await deps.management.findPasswordHash(user.id))) {
    await recordSuccess(deps, user, origin)
    return null
  }
  recordFailureLater(deps, user, origin, toUserAuthor(user))
  return { kind: 'wrong_password' }
}

/** Counts unknown tokens only. A token cannot be guessed, and a person with a valid link may share the guesser's network. */
async function findUsableLink(
  { management, attempts, clock }: SignInDeps,
  token: string,
  { network }: SignInOrigin,
): Promise<Result<SignInLink, LinkRefusal>> {
  const link = await management.findSignInLink(hashSecret(token))
  const problem = findLinkProblem(link, clock.nowMs())
  if (link !== null && problem === null) return ok(link)
  const throttled = link === null ? await attempts.count('address', network) : null
  return err(throttled ?? { kind: 'link', problem: problem ?? 'unknown' })
}

/** Counts an attempt on the user, or on what was typed instead of a user's address; the same work for both. */
async function countGuess(
  { management, attempts, clock }: SignInDeps,
  account: User | { readonly typed: string },
  { network }: SignInOrigin,
): Promise<Throttled | null> {
  const userId = 'id' in account ? account.id : ''
  const homeKey = toHomeKey(userId, network)
  if (await management.isHomeNetwork(homeKey, clock.nowMs())) return attempts.count('home', homeKey)
  return 'id' in account ? attempts.count('user', userId) : attempts.count('account', hashAccount(account.typed))
}

/** A shorter password than new ones may have is checked: the limit may have been lower when it was set. */
async function isRightPassword({ matches }: Hashing, password: string, stored: string | null): Promise<boolean> {
  const typed = normalizePassword(password)
  // A password that is too long takes as long as another one.
  const isMatch = await matches(typed.slice(0, passwordLength.max), stored)
  return isMatch && typed.length <= passwordLength.max
}

async function recordSuccess({ attempts }: SignInDeps, { id }: User, { network }: SignInOrigin): Promise<void> {
  await attempts.recordSignIn({ id, network, homeKey: toHomeKey(id, network) })
}

function toHomeKey(userId: string, network: string): string {
  return `${userId} ${network}`
}

/** After the answer, since its time would otherwise tell whether there is such a user. */
function recordFailureLater(
  { management, clock, logger }: SignInDeps,
  user: User,
  { address }: SignInOrigin,
  by: Author,
): void {
  const change = { by, atMs: clock.nowMs() }
  const record = () =>
    management.recordFailedSignIn(user, address, change).catch((cause: unknown) => {
      logger.warn({ err: cause }, 'could not record a failed sign-in in the activity log')
    })
  setTimeout(() => void record(), failureDelayMs).unref()
}

/** @returns throttled, before an account is counted, while too many passwords are being hashed. */
async function hashInTurn<T, E>(
  { passwords }: SignInDeps,
  { network, block }: SignInOrigin,
  work: (hashing: Hashing) => Promise<Result<T, E | Throttled>>,
): Promise<Result<T, E | Throttled>> {
  try {
    return await passwords.inTurn({ sender: network, group: block }, work)
  } catch (error) {
    if (error instanceof PasswordsBusyError) return err({ kind: 'throttled', retryAfterMs: 1_000 })
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
  const started = await deps.management.createSession(user, session, createOwnChange(deps, user))
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
