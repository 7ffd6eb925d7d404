// Encrypts payload texts for storage, and decrypts them: AES-256-GCM with a random nonce; the stored text names its
// key. Its form is `enc:v1:<key id>:<nonce, ciphertext, tag as base64url>`.

import { createCipheriv, createDecipheriv } from 'node:crypto'
import { ok, type Result } from '#core/result.ts'
import type { EncryptionKeys } from '#ports/encryption-keys.ts'
import type { RandomBytes } from './generate-key.ts'

/** Where a sealed payload belongs; it cannot be opened anywhere else. */
export interface PayloadContext {
  readonly projectId: number
  /** `true`, or a variant's key. */
  readonly valueKey: string
}

export type PayloadCipher = ReturnType<typeof createPayloadCipher>

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16
const sealedForm = /^enc:v1:([0-9a-f]{16}):([A-Za-z0-9_-]+)$/

export function createPayloadCipher(keys: EncryptionKeys, randomBytes: RandomBytes) {
  return {
    /** @returns one line for the operator when there is no key. */
    async seal(text: string, place: PayloadContext): Promise<Result<string, string>> {
      const key = await keys.getCurrentKey()
      if (!key.ok) return key
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, key.value.bytes, nonce, { authTagLength: tagBytes })
      cipher.setAAD(toAssociatedData(place))
      const sealed = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]
      return ok(`enc:v1:${key.value.id}:${Buffer.concat(sealed).toString('base64url')}`)
    },

    /** @returns null when this instance does not have the key, or when the payload was changed or moved. */
    async open(sealed: string, place: PayloadContext): Promise<string | null> {
      const [, keyId, encoded] = sealedForm.exec(sealed) ?? []
      const key = keyId === undefined ? null : await keys.findKey(keyId)
      const bytes = Buffer.from(encoded ?? '', 'base64url')
      if (key === null || bytes.length < nonceBytes + tagBytes) return null
      const decipher = createDecipheriv(algorithm, key.bytes, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      })
      decipher.setAAD(toAssociatedData(place))
      decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes))
      try {
        const text = decipher.update(bytes.subarray(nonceBytes, bytes.length - tagBytes), undefined, 'utf8')
        return text + decipher.final('utf8')
      } catch {
        return null // OpenSSL only reports that the tag does not match
      }
    },
  }
}

/** The payload is not bound to its flag: a new flag has no id yet, and a flag's key may change. */
function toAssociatedData({ projectId, valueKey }: PayloadContext): Buffer {
  return Buffer.from(JSON.stringify(['pennon payload', projectId, valueKey]))
}
