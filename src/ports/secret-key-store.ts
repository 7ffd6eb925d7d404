// Secret keys of projects (`phs_…`): a primary one and, after a rotation, the one before as backup. Both open what a server
// reads of its own project. Which keys are valid, fronts know from the project's definitions (`secretKeyHashes`).

import type { SecretKeys } from '#core/project.ts'
import type { Result } from '#core/result.ts'
import type { Written } from './written.ts'

/** Every write bumps the revision, so that other processes follow. Keys of a deleted project open nothing. */
export interface SecretKeyStore {
  /** The new key becomes the primary one, the former primary the backup, and the former backup ends. */
  rotateSecretKey(projectId: number, key: NewSecretKey): Promise<Result<Written<SecretKeys>, 'not_found'>>
  /** Ends the backup; a project that has none stays as it is. */
  deleteBackupSecretKey(projectId: number): Promise<Result<Written<SecretKeys>, 'not_found'>>
  /** The keys of these projects; those without a key may be missing. */
  listSecretKeys(projectIds: readonly number[]): Promise<readonly (SecretKeys & { readonly projectId: number })[]>
}

export interface NewSecretKey {
  /** SHA-256 of the key, hex; the key itself is never stored. */
  readonly secretHash: string
  /** What people are shown of it afterwards. */
  readonly masked: string
  readonly createdAtMs: number
}
