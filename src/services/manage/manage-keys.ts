// Creates and deletes personal API keys and the secret keys of projects. A secret is shown only once, on creation. A new
// secret key of a project turns the former key into the backup.

import type { Change } from '#core/author.ts'
import type { PersonalKey } from '#core/personal-key.ts'
import type { SecretKeys } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import { isKnownScope } from '#core/scopes.ts'
import type { PersonalKeyStore, ProjectStore, SecretKeyStore } from '#ports/state/project-store.ts'
import { waitUntilServed } from './definition-writes.ts'
import { generatePersonalKey, generateSecretKey, type RandomBytes, secretKeyPrefix } from './generate-key.ts'
import type { PersonalKeyCheck } from './personal-key-check.ts'
import { hashSecret } from './secret-digests.ts'

export interface ManageKeysDeps {
  readonly management: Pick<PersonalKeyStore, 'createPersonalKey' | 'deletePersonalKey'> &
    Pick<ProjectStore, 'findProject'>
  readonly keyCheck: PersonalKeyCheck
  readonly newUuid: () => string
  readonly randomBytes: RandomBytes
}

export type KeyRefusal =
  | { readonly kind: 'no_scopes' }
  | { readonly kind: 'unknown_scope'; readonly index: number; readonly scope: string }
  | { readonly kind: 'unknown_project'; readonly index: number; readonly projectId: number }

/** @returns the key and, only here, its secret. */
export async function createPersonalKey(
  deps: Omit<ManageKeysDeps, 'keyCheck'>,
  input: { label: string; scopes: readonly string[]; scopedProjectIds: readonly number[] },
  change: Change,
): Promise<Result<{ key: PersonalKey; secret: string }, KeyRefusal>> {
  if (input.scopes.length === 0) return err({ kind: 'no_scopes' })
  const unknown = input.scopes.findIndex(scope => !isKnownScope(scope))
  if (unknown !== -1) return err({ kind: 'unknown_scope', index: unknown, scope: input.scopes[unknown]! })
  for (const [index, projectId] of input.scopedProjectIds.entries()) {
    if ((await deps.management.findProject(projectId)) === null) {
      return err({ kind: 'unknown_project', index, projectId })
    }
  }
  const secret = generatePersonalKey(deps.randomBytes)
  const key = await deps.management.createPersonalKey(
    {
      id: deps.newUuid(),
      label: input.label,
      scopes: [...new Set(input.scopes)],
      scopedProjectIds: [...new Set(input.scopedProjectIds)],
      lastUsedAtMs: null,
      secretHash: hashSecret(secret),
    },
    change,
  )
  return ok({ key, secret })
}

/** The key stops working in this process at once, and in others as soon as they follow the revision. */
export async function deletePersonalKey(
  deps: ManageKeysDeps,
  id: string,
  change: Change,
): Promise<Result<null, 'not_found'>> {
  const deleted = await deps.management.deletePersonalKey(id, change)
  deps.keyCheck.forget()
  return deleted ? ok(null) : err('not_found')
}

export interface ManageSecretKeysDeps {
  readonly management: Omit<SecretKeyStore, 'listSecretKeys'>
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly randomBytes: RandomBytes
}

/** Gives the project a new secret key. @returns what is stored and, only here, the key itself. */
export async function rotateSecretKey(
  deps: ManageSecretKeysDeps,
  projectId: number,
  change: Change,
): Promise<Result<{ keys: SecretKeys; secret: string }, 'not_found'>> {
  const secret = generateSecretKey(deps.randomBytes)
  const stored = { secretHash: hashSecret(secret), masked: maskSecret(secret) }
  const served = await waitUntilServed(deps, await deps.management.rotateSecretKey(projectId, stored, change))
  return served.ok ? ok({ keys: served.value, secret }) : served
}

/** The backup stops working in this process at once, and in others as soon as they follow the revision. */
export async function deleteBackupSecretKey(
  deps: ManageSecretKeysDeps,
  projectId: number,
  change: Change,
): Promise<Result<SecretKeys, 'not_found'>> {
  return waitUntilServed(deps, await deps.management.deleteBackupSecretKey(projectId, change))
}

/**
 * Masks 39 of 43 characters: the four that are left distinguish two keys, but do not help to guess one. Source: as PostHog
 * masks keys.
 */
function maskSecret(secret: string): string {
  return `${secretKeyPrefix}...${secret.slice(-4)}`
}
