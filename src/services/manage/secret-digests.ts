// Remembers the digests of secrets that SDKs send with every request, so that each is hashed once, not thousands of
// times an hour.

import { hash as digest, randomInt } from 'node:crypto'

/** SHA-256, hex: the form in which keys are stored. */
export function hashSecret(secret: string): string {
  return digest('sha256', secret, 'hex')
}

export type SecretDigests = ReturnType<typeof createSecretDigestCache>

/**
 * A digest does not mean that a key is valid: the caller looks the key up by its digest each time, so a deleted key is
 * refused just as soon as it would be without this memory. The time of a look-up reveals nothing about a kept secret: the
 * secret is found by a number that cannot be predicted from outside, and compared in a time that depends only on the length
 * of the sent text. Kept secrets are only in the memory of this process, where the secrets of requests are anyway.
 */
export function createSecretDigestCache(countMax: number) {
  const kept = new Map<number, { readonly secret: string; readonly hash: string }>()
  const seed = randomInt(2 ** 31)
  return {
    /** Returns the same as `hashSecret`, without hashing a secret that `keep` has stored. */
    of(secret: string): string {
      const known = kept.get(hashToNumber(secret, seed))
      return known !== undefined && isSameText(secret, known.secret) ? known.hash : hashSecret(secret)
    },
    /** Call it only for a secret found to be valid, so that made-up secrets cannot crowd out real ones. */
    keep(secret: string, hash: string): void {
      const number = hashToNumber(secret, seed)
      if (kept.has(number)) return
      if (kept.size >= countMax) kept.clear()
      kept.set(number, { secret, hash })
    },
  }
}

/** FNV-1a with a random start: 30 bits. */
function hashToNumber(text: string, seed: number): number {
  let number = seed
  for (let index = 0; index < text.length; index++) number = Math.imul(number ^ text.charCodeAt(index), 0x01000193)
  return number & 0x3fffffff
}

/** Compares every character of `sent`, even when the first ones differ. */
function isSameText(sent: string, kept: string): boolean {
  if (sent.length !== kept.length) return false
  let difference = 0
  for (let index = 0; index < sent.length; index++) difference |= sent.charCodeAt(index) ^ kept.charCodeAt(index)
  return difference === 0
}
