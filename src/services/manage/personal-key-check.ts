// Which personal API key a secret is, with a short memory so that a busy script costs one look-up, not thousands.
// What the key may do is decided where it is asked for (`http/management/kit/authenticate.ts`).

import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Clock } from '#ports/clock.ts'
import type { PersonalKey, PersonalKeyStore } from '#ports/management-store.ts'
import { QueueFullError } from '#ports/port-error.ts'
import type { PersonalKeyUses } from './personal-key-uses.ts'
import { createSecretDigests } from './secret-digests.ts'

export interface PersonalKeyCheck {
  /**
   * The key that the secret stands for, or null; finding it is a use of it. A key deleted by another process is believed
   * until this one hears of it, within a second; for 10 s at most while the state does not answer. Answers at once while it
   * remembers. A secret that stands for no key is not asked for again within a second, unless this process hears of a change.
   * @throws PortError when the state cannot be read; `QueueFullError` when it is asked for very many secrets already that were
   *   never found to be keys.
   */
  find(secret: string): MaybePromise<PersonalKey | null>
  /** Asks for every key anew: called after a key was deleted here, and when the revision says that something changed elsewhere. */
  forget(): void
}

export const personalKeyPrefix = 'phx_'
const rememberedForMs = 10_000
const rememberedCountMax = 1_000
const unknownForMs = 1_000
const unknownCountMax = 10_000
/**
 * How many secrets that were never found to be keys the state is asked for at a time: a tenth of the calls that it takes, so
 * that made-up keys leave it to everything else.
 */
export const strangersAskedMax = 100
/** Longer secrets cannot be valid, and are not worth hashing. */
export const secretLengthMax = 200

/** Keys are stored, looked up and remembered by SHA-256 digests, so timing tells nothing about a secret. */
export function createPersonalKeyCheck(deps: {
  management: Pick<PersonalKeyStore, 'findPersonalKeyByHash'>
  clock: Clock
  uses: Pick<PersonalKeyUses, 'note'>
}): PersonalKeyCheck {
  /** An entry whose time is over still tells that there was such a key. */
  const remembered = new Map<string, { readonly key: PersonalKey; untilMs: number }>()
  /** Until when a hash is known to be no key's. */
  const unknown = new Map<string, number>()
  const digests = createSecretDigests(rememberedCountMax)
  let generation = 0
  let strangersAsked = 0
  return {
    find(secret) {
      if (!secret.startsWith(personalKeyPrefix) || secret.length > secretLengthMax) return null
      const hash = digests.of(secret)
      const known = remembered.get(hash)
      if (known !== undefined && known.untilMs > deps.clock.nowMs()) {
        deps.uses.note(known.key)
        return known.key
      }
      if ((unknown.get(hash) ?? 0) > deps.clock.nowMs()) return null
      return known === undefined ? askForStranger(secret, hash) : ask(secret, hash)
    },
    forget() {
      generation++
      for (const entry of remembered.values()) entry.untilMs = 0
      unknown.clear()
    },
  }

  async function askForStranger(secret: string, hash: string): Promise<PersonalKey | null> {
    if (strangersAsked >= strangersAskedMax) throw new QueueFullError('state')
    strangersAsked++
    try {
      return await ask(secret, hash)
    } finally {
      strangersAsked--
    }
  }

  async function ask(secret: string, hash: string): Promise<PersonalKey | null> {
    const askedIn = generation
    const key = await deps.management.findPersonalKeyByHash(hash)
    if (key === null) remembered.delete(hash)
    // Made or deleted while we asked: answer this once, remember nothing.
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
