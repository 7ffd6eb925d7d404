// Projects: the tokens by which capture and evaluation find them, and their settings. Every front has a copy, which it
// loads along with flag definitions, so every write raises the revision.

import type { Change } from '#core/author.ts'
import type { PersonalKey } from '#core/personal-key.ts'
import type { IngestionSettings, Project, Quotas, SecretKeys } from '#core/project.ts'
import type { Result } from '#core/result.ts'
import type { Page, Written } from './written.ts'

/** Tokens are unique among the projects that are not deleted. The id of a deleted project is never used again. */
export interface ProjectStore {
  createProject(input: NewProject, change: Change): Promise<Result<Written<Project>, 'token_taken'>>
  /**
   * `clientSettings`, `ingestion` and `quotas` are merged into the stored settings, name by name; other fields are
   * replaced.
   */
  updateProject(
    projectId: number,
    patch: Partial<Omit<NewProject, 'uuid' | 'quotas' | 'ingestion'>> & {
      readonly quotas?: Partial<Quotas>
      readonly ingestion?: Partial<IngestionSettings>
    },
    change: Change,
  ): Promise<Result<Written<Project>, 'not_found' | 'token_taken'>>
  deleteProject(projectId: number, change: Change): Promise<Result<Written<null>, 'not_found'>>
  findProject(projectId: number): Promise<Project | null>
  /** In the order of their ids; only the projects in `ids`, if given. `Page` explains short pages. */
  listProjects(page: { limit: number; offset: number; ids?: readonly number[] }): Promise<Page<Project>>
  /** Ids of all projects that are not deleted, for schedules that visit them all. */
  listProjectIds(): Promise<readonly number[]>
}

export type NewProject = Omit<Project, 'id' | 'createdAtMs'>

// Secret keys of projects (`phs_…`), which allow a server to read its own project: a primary key and, after a rotation,
// the previous key as backup. Fronts know the valid keys from the project's definitions (`secretKeyHashes`).

/** Every write raises the revision, so that other processes follow. Keys of a deleted project are not valid. */
export interface SecretKeyStore {
  /**
   * The new key becomes the primary key, and the old primary key becomes the backup. The former backup is no longer valid.
   */
  rotateSecretKey(
    projectId: number,
    key: NewSecretKey,
    change: Change,
  ): Promise<Result<Written<SecretKeys>, 'not_found'>>
  /** Makes the backup key invalid. A project without a backup key stays unchanged. */
  deleteBackupSecretKey(projectId: number, change: Change): Promise<Result<Written<SecretKeys>, 'not_found'>>
  /** The keys of these projects. Projects without a key may be missing. */
  listSecretKeys(projectIds: readonly number[]): Promise<readonly (SecretKeys & { readonly projectId: number })[]>
}

export interface NewSecretKey {
  /** SHA-256 of the key, hex; the key itself is never stored. */
  readonly secretHash: string
  /** The masked form of the key, which the private API shows once the key exists. */
  readonly masked: string
}

/** Personal API keys. The store never receives a key, only its hash; which scopes exist is decided elsewhere. */
export interface PersonalKeyStore {
  /** @param input.secretHash SHA-256 of the key, hex. @throws PortError `conflict` when a key has this id or hash. */
  createPersonalKey(
    input: Omit<PersonalKey, 'createdAtMs'> & { secretHash: string },
    change: Change,
  ): Promise<PersonalKey>
  findPersonalKeyByHash(secretHash: string): Promise<PersonalKey | null>
  findPersonalKey(id: string): Promise<PersonalKey | null>
  /** Oldest first. `Page` explains short pages. */
  listPersonalKeys(page: { limit: number; offset: number }): Promise<Page<PersonalKey>>
  /** @returns whether the key existed. */
  deletePersonalKey(id: string, change: Change): Promise<boolean>
  /** Moves `lastUsedAtMs` forward, never back. Ids of deleted keys are ignored. */
  savePersonalKeyUses(uses: readonly { id: string; usedAtMs: number }[]): Promise<void>
}
