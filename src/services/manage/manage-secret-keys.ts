// Manages secret keys of projects: creates a new key, which turns the former one into the backup, and deletes the
// backup.

import type { Change } from '#core/author.ts'
import type { SecretKeys } from '#core/project.ts'
import { ok, type Result } from '#core/result.ts'
import type { SecretKeyStore } from '#ports/state/secret-key-store.ts'
import { generateSecretKey, type RandomBytes, secretKeyPrefix } from './generate-key.ts'
import { hashSecret } from './secret-digests.ts'

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
  const written = await deps.management.rotateSecretKey(
    projectId,
    {
      secretHash: hashSecret(secret),
      masked: maskSecret(secret),
    },
    change,
  )
  if (!written.ok) return written
  await deps.definitionsReady(written.value.revision)
  return ok({ keys: written.value.value, secret })
}

/** The backup stops working here at once, and in other processes as soon as they follow the revision. */
export async function deleteBackupSecretKey(
  deps: ManageSecretKeysDeps,
  projectId: number,
  change: Change,
): Promise<Result<SecretKeys, 'not_found'>> {
  const written = await deps.management.deleteBackupSecretKey(projectId, change)
  if (!written.ok) return written
  await deps.definitionsReady(written.value.revision)
  return ok(written.value.value)
}

/**
 * Masks 39 of 43 characters: the rest distinguishes two keys, but does not help to guess one. Source: as PostHog masks
 * keys.
 */
function maskSecret(secret: string): string {
  return `${secretKeyPrefix}...${secret.slice(-4)}`
}
