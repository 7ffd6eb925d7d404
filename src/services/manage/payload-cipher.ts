// Payload texts to what is stored of them and back: AES-256-GCM under a random nonce, the key named beside it.
// The form: `enc:v1:<key id>:<nonce, ciphertext, tag as base64url>`.

import { createCipheriv, createDecipheriv } from 'node:crypto'
import { ok, type Result } from '#core/result.ts'
import type { EncryptionKeys } from '#ports/encryption-keys.ts'
import type { RandomBytes } from './generate-key.ts'

/** What a sealed payload belongs to; elsewhere it cannot be opened. */
export interface PayloadPlace {
  readonly projectId: number
  /** `true`, or a variant's key. */
  readonly valueKey: string
}

export interface PayloadCipher {
  /** @returns one line for a person when there is no key. */
  seal(text: string, place: PayloadPlace): Promise<Result<string, string>>
  /** Null when its key is not here, or when it was changed or moved. */
  open(sealed: string, place: PayloadPlace): Promise<string | null>
}

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16
const sealedForm = /^enc:v1:([0-9a-f]{16}):([A-Za-z0-9_-]+)$/

export function createPayloadCipher(keys: EncryptionKeys, randomBytes: RandomBytes): PayloadCipher {
  return {
    async seal(text, place) {
      const key = await keys.current()
      if (!key.ok) return key
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, key.value.bytes, nonce, { authTagLength: tagBytes })
      cipher.setAAD(boundTo(place))
      const sealed = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]
      return ok(`enc:v1:${key.value.id}:${Buffer.concat(sealed).toString('base64url')}`)
    },

    async open(sealed, place) {
      const [, keyId, encoded] = sealedForm.exec(sealed) ?? []
      const key = keyId === undefined ? null : await keys.find(keyId)
      const bytes = Buffer.from(encoded ?? '', 'base64url')
      if (key === null || bytes.length < nonceBytes + tagBytes) return null
      const decipher = createDecipheriv(algorithm, key.bytes, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      })
      decipher.setAAD(boundTo(place))
      decipher.setAuthTag(bytes.subarray(bytes.length - tagBytes))
      try {
        const text = decipher.update(bytes.subarray(nonceBytes, bytes.length - tagBytes), undefined, 'utf8')
        return text + decipher.final('utf8')
      } catch {
        return null // OpenSSL says no more than that the tag does not fit
      }
    },
  }
}

/** Not the flag: it has no id yet when it is made, and its key may change. */
function boundTo({ projectId, valueKey }: PayloadPlace): Buffer {
  return Buffer.from(JSON.stringify(['pennon payload', projectId, valueKey]))
}
