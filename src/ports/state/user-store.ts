// People who sign in: users, their sessions, the links that sign somebody in once, and the counts of attempts. The store
// never receives a password, a token or the secret of a session, only their hashes; what a role allows is decided elsewhere.

import type { Change } from '#core/author.ts'
import type { Result } from '#core/result.ts'
import type { LinkProblem, SignedIn, SignInLink, UserSession } from '#core/users/session.ts'
import type { AttemptKind } from '#core/users/sign-in-throttle.ts'
import type { User } from '#core/users/user.ts'
import type { Page } from './written.ts'

/** Users are created by links. Every write raises the revision, so that other processes look sessions up again. */
export interface UserStore {
  findUser(id: string): Promise<User | null>
  /** @param email lower case. */
  findUserByEmail(email: string): Promise<User | null>
  /** The hash of the password in PHC text form; null for a user without one. */
  findPasswordHash(userId: string): Promise<string | null>
  /** Oldest first. `Page` explains short pages. */
  listUsers(page: { limit: number; offset: number }): Promise<Page<User>>
  /**
   * A user who is disabled, gets more rights or gets another password loses all sessions; one who is disabled or gets
   * another password also loses their links. A user who is disabled or gets fewer rights loses the keys that they made and
   * that go beyond what is left, also by means of other such keys; one who is no active admin any more also loses the
   * invitations that they made, and all unused reset links end.
   * @param accessVersion of the user when a password was checked, `changed` when it has risen since; null when none was.
   */
  updateUser(
    id: string,
    patch: UserPatch,
    change: Change,
    accessVersion?: number | null,
  ): Promise<Result<User, 'not_found' | 'email_taken' | 'last_admin' | 'changed'>>
  /** Also deletes the user's sessions and links, and the keys and invitations that they made. */
  deleteUser(id: string, change: Change): Promise<Result<null, 'not_found' | 'last_admin'>>
}

export type UserPatch = Partial<Pick<User, 'email' | 'name' | 'role' | 'seesPersons' | 'isDisabled'>> & {
  readonly passwordHash?: string
  /** The new hash is of the same password, so sessions and links stay, and there is no entry in the activity log. */
  readonly isSamePassword?: true
}

export interface NewSession {
  readonly id: string
  /** SHA-256 of the session's secret, hex. */
  readonly secretHash: string
  readonly userAgent: string
  readonly address: string
}

export interface SessionStore {
  /**
   * Creates a session, and removes the sessions that have ended and all but the newest 100 of the user.
   * @param user as read before the password was checked; `not_found` when all sessions were ended since.
   */
  createSession(
    user: Pick<User, 'id' | 'accessVersion'>,
    session: NewSession,
    change: Change,
  ): Promise<Result<SignedIn, 'not_found'>>
  /** Also finds a session that has ended by the clock; null when its user is disabled. */
  findSession(secretHash: string): Promise<SignedIn | null>
  /** Newest first, those that have not ended by `nowMs`. */
  listSessions(userId: string, nowMs: number): Promise<readonly UserSession[]>
  /**
   * Raises the revision, so that other processes follow.
   * @param which one session, or all of the user's except one. @returns how many ended.
   */
  endSessions(
    userId: string,
    which: { readonly only: string } | { readonly except: string | null },
    change: Change,
  ): Promise<number>
  /** Moves `lastSeenAtMs` of sessions and of their users forward, never back. Ids of ended sessions are ignored. */
  saveSessionUses(uses: readonly { id: string; usedAtMs: number }[]): Promise<void>
}

export interface LinkSpending {
  readonly tokenHash: string
  /** Id of the new user, if the link makes one. */
  readonly newUserId: string
  /** What the person gave; a field that is missing stays as the link or the user has it. */
  readonly given: { readonly name?: string; readonly email?: string; readonly passwordHash?: string }
  readonly session: NewSession
}

/** Links are spent by their token, of which the store has the SHA-256, hex. */
export interface SignInLinkStore {
  /** Replaces unused links for the same user, or for the same new address. Removes links that expired a month ago. */
  createSignInLink(link: Omit<SignInLink, 'createdAtMs' | 'usedAtMs'>, tokenHash: string, change: Change): Promise<void>
  findSignInLink(tokenHash: string): Promise<SignInLink | null>
  /** Links that make a user and can still be used, oldest first. No user can take the address of one. */
  listInvitations(page: { limit: number; offset: number }, nowMs: number): Promise<Page<SignInLink>>
  /** @returns whether there was one. */
  deleteInvitation(id: string, change: Change): Promise<boolean>
  /** Uses the link, creates or changes its user, and starts a session, all or nothing. A link is spent once. */
  spendSignInLink(
    spending: LinkSpending,
    nowMs: number,
  ): Promise<Result<SignedIn, LinkProblem | 'email_taken' | 'user_disabled'>>
}

/** Attempts are counted in the state, so that all fronts count together. `keptAttempts` says how many are kept. */
export interface SignInAttemptStore {
  /** Counts an attempt unless it has to wait. @returns how long to wait; null when it was counted. */
  countSignInAttempt(kind: AttemptKind, key: string, nowMs: number): Promise<number | null>
  /** Whether the user signed in from this network in the last 30 days: then their attempts there count as `home`. */
  isHomeNetwork(homeKey: string, nowMs: number): Promise<boolean>
  /**
   * Makes the network a home of the user, takes back one attempt of its address, and lets the attempts under the name that
   * was counted start afresh.
   */
  recordSignIn(
    user: { readonly id: string; readonly network: string; readonly homeKey: string },
    nowMs: number,
  ): Promise<void>
  /** Records a wrong password in the activity log. */
  recordFailedSignIn(user: User, address: string, change: Change): Promise<void>
}
