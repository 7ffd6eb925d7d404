// Finds the personal API key of a secret, with a short memory so that a busy script costs one look-up, not thousands.
// The caller decides what the key may do (`http/management/kit/authenticate.ts`).

import type { MaybePromise } from '#core/maybe-promise.ts'
import type { PersonalKey } from '#core/personal-key.ts'
import type { Clock } from '#ports/clock.ts'
import { QueueFullError } from '#ports/port-error.ts'
import type { PersonalKeyStore } from '#ports/state/project-store.ts'
import type { PersonalKeyUses } from './personal-key-uses.ts'
import { createSecretDigestCache } from './secret-digests.ts'

export type PersonalKeyCheck = ReturnType<typeof createPersonalKeyCheck>

export const personalKeyPrefix = 'phx_'
const rememberedForMs = 10_000
const rememberedCountMax = 1_000
const unknownForMs = 1_000
const unknownCountMax = 10_000
/**
 * How many never-seen secrets may be looked up in the state at a time: a tenth of the calls that the state accepts, so
 * that made-up keys leave capacity for everything else.
 */
export const unknownKeysAskedMax = 100
/** Longer secrets cannot be valid, so they are not hashed. */
export const secretLengthMax = 200

/** Keys are stored, looked up and remembered by SHA-256 digests, so timing reveals nothing about a secret. */
export function createPersonalKeyCheck(deps: {
  management: Pick<PersonalKeyStore, 'findPersonalKeyByHash'>
  clock: Clock
  uses: Pick<PersonalKeyUses, 'note'>
}) {
  /** An expired entry still shows that the key existed. */
  const remembered = new Map<string, { readonly key: PersonalKey; untilMs: number }>()
  /** The time until which a hash counts as not belonging to any key. */
  const unknown = new Map<string, number>()
  const digests = createSecretDigestCache(rememberedCountMax)
  let generation = 0
  let unknownKeysAsked = 0
  return {
    /**
     * The key with this secret, or null; finding a key counts as a use of it. Synchronous while the key is remembered. A
     * key that another process deleted stays valid until this process notices, within a second, or within 10 s while the
     * state does not answer. An unknown secret is not looked up again within a second, unless this process notices a
     * change.
     * @throws PortError when the state cannot be read; `QueueFullError` while too many look-ups of never-seen secrets are
     *   under way.
     */
    find(secret: string): MaybePromise<PersonalKey | null> {
      if (!secret.startsWith(personalKeyPrefix) || secret.length > secretLengthMax) return null
      const hash = digests.of(secret)
      const known = remembered.get(hash)
      if (known !== undefined && known.untilMs > deps.clock.nowMs()) {
        deps.uses.note(known.key)
        return known.key
      }
      if ((unknown.get(hash) ?? 0) > deps.clock.nowMs()) return null
      return known === undefined ? lookUpUnknown(secret, hash) : lookUpKey(secret, hash)
    },
    /** Looks up every key again. Called after a key was deleted here, and when the revision shows a change elsewhere. */
    forget(): void {
      generation++
      for (const entry of remembered.values()) entry.untilMs = 0
      unknown.clear()
    },
  }

  async function lookUpUnknown(secret: string, hash: string): Promise<PersonalKey | null> {
    if (unknownKeysAsked >= unknownKeysAskedMax) throw new QueueFullError('state')
    unknownKeysAsked++
    try {
      return await lookUpKey(secret, hash)
    } finally {
      unknownKeysAsked--
    }
  }

  async function lookUpKey(secret: string, hash: string): Promise<PersonalKey | null> {
    const askedIn = generation
    const key = await deps.management.findPersonalKeyByHash(hash)
    if (key === null) remembered.delete(hash)
    // If keys changed during the look-up, the key is returned this once but not remembered.
    if (askedIn === generation) remember(hash, key)
    if (key === null) return null
    digests.keep(secret, hash)
    deps.uses.note(key)
    return key
  }

  function remember(hash: string, key: PersonalKey | null): void {
    const nowMs = deps.clock.nowMs()
    if (key === null) {
      if (unknown.size >= unknownCountMax) unknown.clear()
      unknown.set(hash, nowMs + unknownForMs)
      return
    }
    if (remembered.size >= rememberedCountMax && !remembered.has(hash)) remembered.clear()
    remembered.set(hash, { key, untilMs: nowMs + rememberedForMs })
  }
}
