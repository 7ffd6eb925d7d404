// Keys that flags' payloads are encrypted with, wherever an instance keeps them.

import type { Result } from '#core/result.ts'

export interface EncryptionKey {
  /** Tells the keys of an instance apart, in what they encrypted too; says nothing about the key. 16 hexadecimal digits. */
  readonly id: string
  /** 32. */
  readonly bytes: Uint8Array
}

export interface EncryptionKeys {
  /**
   * The one that encrypts. Where keys may be made, the first call makes one, durable before it is handed out and the same
   * for every process of the instance.
   * @returns one line for a person when there is none.
   */
  current(): Promise<Result<EncryptionKey, string>>
  /** Any that decrypts, former ones included; null for one that is not here. */
  find(id: string): Promise<EncryptionKey | null>
}
