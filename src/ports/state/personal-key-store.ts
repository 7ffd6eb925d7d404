// Personal API keys. The store never receives a key, only its hash; which scopes exist is decided elsewhere.

import type { Change } from '#core/author.ts'
import type { PersonalKey } from '#core/personal-key.ts'
import type { Page } from './written.ts'

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
