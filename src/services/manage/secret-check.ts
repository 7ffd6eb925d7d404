// Finds what a secret stands for, a personal API key or a session, with a short memory so that a busy client costs one
// look-up, not thousands.

import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Clock } from '#ports/clock.ts'
import { QueueFullError } from '#ports/port-error.ts'
import { createSecretDigestCache } from './secret-digests.ts'

const rememberedForMs = 10_000
const rememberedCountMax = 1_000
const unknownForMs = 1_000
const unknownCountMax = 10_000
/**
 * How many never-seen secrets may be looked up in the state at a time: a tenth of the calls that the state accepts, so
 * that made-up secrets leave capacity for everything else.
 */
export const unknownSecretsAskedMax = 100
/** Longer secrets cannot be valid, so they are not hashed. */
export const secretLengthMax = 200

export interface SecretCheck<T> {
  /**
   * What the secret stands for, or null. Synchronous while it is remembered. What another process ended stays valid until
   * this process notices, within a second, or within 10 s while the state does not answer. An unknown secret is not looked
   * up again within a second, unless this process notices a change.
   * @throws PortError when the state cannot be read; `QueueFullError` while too many look-ups of never-seen secrets are
   *   under way.
   */
  find(secret: string): MaybePromise<T | null>
  /** Looks up everything again. Called after something ended here, and when the revision shows a change elsewhere. */
  forget(): void
}

/** Secrets are stored, looked up and remembered by SHA-256 digests, so timing reveals nothing about a secret. */
export function createSecretCheck<T>(deps: {
  readonly clock: Clock
  readonly isWellFormed: (secret: string) => boolean
  readonly lookUp: (hash: string) => Promise<T | null>
  /** Called with everything that is found, remembered or not. @returns null if it is no longer valid. */
  readonly onFound: (found: T) => T | null
}): SecretCheck<T> {
  /** An expired entry still shows that the secret was valid. */
  const remembered = new Map<string, { readonly found: T; untilMs: number }>()
  /** The time until which a hash counts as unknown. */
  const unknown = new Map<string, number>()
  const digests = createSecretDigestCache(rememberedCountMax)
  let generation = 0
  let unknownAsked = 0
  return {
    find(secret) {
      if (secret.length > secretLengthMax || !deps.isWellFormed(secret)) return null
      const hash = digests.of(secret)
      const known = remembered.get(hash)
      if (known !== undefined && known.untilMs > deps.clock.nowMs()) return deps.onFound(known.found)
      if ((unknown.get(hash) ?? 0) > deps.clock.nowMs()) return null
      return known === undefined ? lookUpUnknown(secret, hash) : lookUp(secret, hash)
    },
    forget() {
      generation++
      for (const entry of remembered.values()) entry.untilMs = 0
      unknown.clear()
    },
  }

  async function lookUpUnknown(secret: string, hash: string): Promise<T | null> {
    if (unknownAsked >= unknownSecretsAskedMax) throw new QueueFullError('state')
    unknownAsked++
    try {
      return await lookUp(secret, hash)
    } finally {
      unknownAsked--
    }
  }

  async function lookUp(secret: string, hash: string): Promise<T | null> {
    const askedIn = generation
    const found = await deps.lookUp(hash)
    if (found === null) remembered.delete(hash)
    // If something changed during the look-up, the result is returned this once but not remembered.
    if (askedIn === generation) remember(hash, found)
    if (found === null) return null
    digests.keep(secret, hash)
    return deps.onFound(found)
  }

  function remember(hash: string, found: T | null): void {
    const nowMs = deps.clock.nowMs()
    if (found === null) {
      if (unknown.size >= unknownCountMax) unknown.clear()
      unknown.set(hash, nowMs + unknownForMs)
      return
    }
    if (remembered.size >= rememberedCountMax && !remembered.has(hash)) remembered.clear()
    remembered.set(hash, { found, untilMs: nowMs + rememberedForMs })
  }
}
