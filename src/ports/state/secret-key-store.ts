// Secret keys of projects (`phs_…`), which allow a server to read its own project: a primary key and, after a rotation,
// the previous key as backup. Fronts know the valid keys from the project's definitions (`secretKeyHashes`).

import type { Change } from '#core/author.ts'
import type { SecretKeys } from '#core/project.ts'
import type { Result } from '#core/result.ts'
import type { Written } from './written.ts'

/** Every write raises the revision, so that other processes follow. Keys of a deleted project are not valid. */
export interface SecretKeyStore {
  /** The new key becomes the primary key and the primary key the backup. The former backup is no longer valid. */
  rotateSecretKey(
    projectId: number,
    key: NewSecretKey,
    change: Change,
  ): Promise<Result<Written<SecretKeys>, 'not_found'>>
  /** Makes the backup invalid. A project without a backup stays unchanged. */
  deleteBackupSecretKey(projectId: number, change: Change): Promise<Result<Written<SecretKeys>, 'not_found'>>
  /** The keys of these projects. Projects without a key may be missing. */
  listSecretKeys(projectIds: readonly number[]): Promise<readonly (SecretKeys & { readonly projectId: number })[]>
}

export interface NewSecretKey {
  /** SHA-256 of the key, hex; the key itself is never stored. */
  readonly secretHash: string
  /** What the private API shows of the key afterwards. */
  readonly masked: string
}
