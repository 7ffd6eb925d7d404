// What admins do with users: invite them, change their role, disable them, and help them back in.

import type { Change } from '#core/author.ts'
import { err, ok, type Result } from '#core/result.ts'
import { type LinkPurpose, linkLifetimesMs, type SignInLink } from '#core/users/session.ts'
import { normalizeEmail, type Role, type User } from '#core/users/user.ts'
import type { SignInLinkStore, UserPatch, UserStore } from '#ports/state/user-store.ts'
import type { RandomBytes } from './generate-key.ts'
import type { PersonalKeyCheck } from './personal-key-check.ts'
import { hashSecret } from './secret-digests.ts'
import { generateToken, type SessionCheck } from './session-check.ts'

export interface ManageUsersDeps {
  readonly management: UserStore & SignInLinkStore
  readonly newUuid: () => string
  readonly randomBytes: RandomBytes
}

type InviteDeps = Omit<ManageUsersDeps, 'management'> & {
  readonly management: Pick<UserStore, 'findUserByEmail'> & Pick<SignInLinkStore, 'createSignInLink'>
}

type ChangeUserDeps = ManageUsersDeps & {
  readonly sessionCheck: Pick<SessionCheck, 'forget'>
  readonly keyCheck: Pick<PersonalKeyCheck, 'forget'>
}

/** A link with its token, which is shown only here. */
export interface NewLink {
  readonly id: string
  readonly token: string
  readonly expiresAtMs: number
}

/** Makes a link for a new user. */
export async function inviteUser(
  deps: InviteDeps,
  invited: {
    readonly email: string | null
    readonly name: string
    readonly role: Role
    readonly seesPersons: boolean
    readonly purpose?: LinkPurpose
  },
  change: Change,
): Promise<Result<NewLink, 'invalid_email' | 'email_taken'>> {
  const email = invited.email === null ? null : normalizeEmail(invited.email)
  if (email === null && invited.email !== null) return err('invalid_email')
  if (email !== null && (await deps.management.findUserByEmail(email)) !== null) return err('email_taken')
  return ok(await createLink(deps, { purpose: 'invitation', ...invited, email, userId: null }, change))
}

/** Makes a link that signs in a user who exists. `reset` asks for a new password. */
export async function createLinkForUser(
  deps: ManageUsersDeps,
  user: User,
  purpose: 'reset' | 'welcome',
  change: Change,
): Promise<Result<NewLink, 'user_disabled'>> {
  if (user.isDisabled) return err('user_disabled')
  const { id: userId, email, name, role, seesPersons } = user
  return ok(await createLink(deps, { purpose, userId, email, name, role, seesPersons }, change))
}

/** The change works at once here, and in other processes as soon as they follow the revision. */
export async function updateUser(
  deps: ChangeUserDeps,
  id: string,
  patch: Pick<UserPatch, 'name' | 'email' | 'role' | 'seesPersons' | 'isDisabled'>,
  change: Change,
): Promise<Result<User, 'not_found' | 'email_taken' | 'last_admin' | 'changed' | 'invalid_email'>> {
  const email = patch.email == null ? null : normalizeEmail(patch.email)
  if (patch.email != null && email === null) return err('invalid_email')
  const updated = await deps.management.updateUser(id, { ...patch, ...(email !== null && { email }) }, change)
  forgetAccess(deps)
  return updated
}

export async function deleteUser(
  deps: ChangeUserDeps,
  id: string,
  change: Change,
): Promise<Result<null, 'not_found' | 'last_admin'>> {
  const deleted = await deps.management.deleteUser(id, change)
  forgetAccess(deps)
  return deleted
}

/** A user's sessions and keys may have ended. */
function forgetAccess({ sessionCheck, keyCheck }: ChangeUserDeps): void {
  sessionCheck.forget()
  keyCheck.forget()
}

/**
 * The address of a link. The token comes after `#`, so that it reaches no log and no referrer.
 * @returns null for a base with a path, below which people cannot sign in: the cookies of sessions have the path `/api`.
 */
export function buildLinkUrl(base: string, token: string): string | null {
  return URL.canParse(base) && new URL(base).pathname !== '/' ? null : `${base}/ui/welcome#${token}`
}

async function createLink(
  {
    management,
    newUuid,
    randomBytes,
  }: Omit<InviteDeps, 'management'> & {
    readonly management: Pick<SignInLinkStore, 'createSignInLink'>
  },
  link: Pick<SignInLink, 'purpose' | 'userId' | 'email' | 'name' | 'role' | 'seesPersons'>,
  change: Change,
): Promise<NewLink> {
  const token = generateToken(randomBytes)
  const expiresAtMs = change.atMs + linkLifetimesMs[link.purpose]
  const id = newUuid()
  await management.createSignInLink({ ...link, id, expiresAtMs }, hashSecret(token), change)
  return { id, token, expiresAtMs }
}
