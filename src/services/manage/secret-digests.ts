// The digests of secrets that SDKs send with each of their questions: hashed once, not thousands of times an hour.

import { hash as digest, randomInt } from 'node:crypto'

/** SHA-256, hex: the form in which keys are stored. */
export function hashSecret(secret: string): string {
  return digest('sha256', secret, 'hex')
}

export interface SecretDigests {
  /** The same as `hashSecret`, remembered for secrets that were kept. */
  of(secret: string): string
  /** Call it only for a secret that was found to be valid: what strangers send must not crowd out the others. */
  keep(secret: string, hash: string): void
}

/**
 * A digest is no verdict: whose key it is, and whether it still is one, is asked with it each time, so that a key which is
 * deleted is refused as soon as without this memory.
 *
 * The look-up tells nothing of a kept secret by its time: a secret is found by a number that nobody outside can foretell,
 * and compared in a time that depends on the length of what was sent alone. Kept secrets are in the memory of this process
 * and nowhere else, as those of requests are anyway.
 */
export function createSecretDigests(countMax: number): SecretDigests {
  const kept = new Map<number, { readonly secret: string; readonly hash: string }>()
  const seed = randomInt(2 ** 31)
  return {
    of: secret => {
      const known = kept.get(numberOf(secret, seed))
      return known !== undefined && isSame(secret, known.secret) ? known.hash : hashSecret(secret)
    },
    keep: (secret, hash) => {
      const number = numberOf(secret, seed)
      if (kept.has(number)) return
      if (kept.size >= countMax) kept.clear()
      kept.set(number, { secret, hash })
    },
  }
}

/** FNV-1a, begun at random: 30 bits. */
function numberOf(text: string, seed: number): number {
  let number = seed
  for (let index = 0; index < text.length; index++) number = Math.imul(number ^ text.charCodeAt(index), 0x01000193)
  return number & 0x3fffffff
}

/** Looks at every character of `sent`, whatever the first ones are. */
function isSame(sent: string, kept: string): boolean {
  if (sent.length !== kept.length) return false
  let difference = 0
  for (let index = 0; index < sent.length; index++) difference |= sent.charCodeAt(index) ^ kept.charCodeAt(index)
  return difference === 0
}
