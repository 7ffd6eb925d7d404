// The keys that encrypt flag payloads, wherever an instance keeps them.

import type { Result } from '#core/result.ts'

export interface EncryptionKey {
  /**
   * Identifies the key within an instance; stored next to everything that the key encrypted. 16 hexadecimal digits that
   * reveal nothing about the key.
   */
  readonly id: string
  /** 32 bytes. */
  readonly bytes: Uint8Array
}

export interface EncryptionKeys {
  /**
   * The key to encrypt with. If the adapter may create keys, the first call creates one; it is durable before it is
   * returned, and the same for every process of the instance.
   * @returns a one-line message for the operator if there is no key.
   */
  getCurrentKey(): Promise<Result<EncryptionKey, string>>
  /** The key to decrypt with, current or former; null if this instance does not have it. */
  findKey(id: string): Promise<EncryptionKey | null>
}
