// Which personal API key a secret is, with a short memory so that a busy script costs one look-up, not thousands.
// What the key may do is decided where it is asked for (`http/management/authenticate.ts`).

import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Clock } from '#ports/clock.ts'
import type { PersonalKey, PersonalKeyStore } from '#ports/management-store.ts'
import type { PersonalKeyUses } from './personal-key-uses.ts'
import { createSecretDigests } from './secret-digests.ts'

export interface PersonalKeyCheck {
  /**
   * The key that the secret stands for, or null; finding it is a use of it. A key deleted by another process is believed
   * until this one hears of it, within a second; for 10 s at most while the state does not answer. Answers at once while it
   * remembers.
   * @throws PortError when the state cannot be read.
   */
  find(secret: string): MaybePromise<PersonalKey | null>
  /** Forgets everything: called after a key was deleted here, and when the revision says that something changed elsewhere. */
  forget(): void
}

export const personalKeyPrefix = 'phx_'
const rememberedForMs = 10_000
const rememberedCountMax = 1_000
/** Longer secrets cannot be valid, and are not worth hashing. */
export const secretLengthMax = 200

/** Keys are stored, looked up and remembered by SHA-256 digests, so timing tells nothing about a secret. */
export function createPersonalKeyCheck(deps: {
  management: Pick<PersonalKeyStore, 'findPersonalKeyByHash'>
  clock: Clock
  uses: Pick<PersonalKeyUses, 'note'>
}): PersonalKeyCheck {
  const remembered = new Map<string, { key: PersonalKey; untilMs: number }>()
  const digests = createSecretDigests(rememberedCountMax)
  let generation = 0
  return {
    find(secret) {
      if (!secret.startsWith(personalKeyPrefix) || secret.length > secretLengthMax) return null
      const hash = digests.of(secret)
      const known = remembered.get(hash)
      if (known !== undefined && known.untilMs > deps.clock.nowMs()) {
        deps.uses.note(known.key)
        return known.key
      }
      return ask(secret, hash)
    },
    forget() {
      generation++
      remembered.clear()
    },
  }

  async function ask(secret: string, hash: string): Promise<PersonalKey | null> {
    const askedIn = generation
    const key = await deps.management.findPersonalKeyByHash(hash)
    remembered.delete(hash)
    // Deleted while we asked: answer this once, remember nothing.
    if (key !== null && askedIn === generation) remember(hash, key)
    if (key === null) return null
    digests.keep(secret, hash)
    deps.uses.note(key)
    return key
  }

  function remember(hash: string, key: PersonalKey): void {
    if (remembered.size >= rememberedCountMax) remembered.clear()
    remembered.set(hash, { key, untilMs: deps.clock.nowMs() + rememberedForMs })
  }
}
