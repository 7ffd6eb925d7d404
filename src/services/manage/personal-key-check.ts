// Finds the personal API key of a secret. The caller decides what the key may do (`http/management/kit/authenticate.ts`).

import type { PersonalKey } from '#core/personal-key.ts'
import type { Clock } from '#ports/clock.ts'
import type { PersonalKeyStore } from '#ports/state/project-store.ts'
import { createSecretCheck, type SecretCheck } from './secret-check.ts'
import type { SecretUses } from './secret-uses.ts'

export type PersonalKeyCheck = SecretCheck<PersonalKey>

export const personalKeyPrefix = 'phx_'

/** Finding a key counts as a use of it. */
export function createPersonalKeyCheck(deps: {
  management: Pick<PersonalKeyStore, 'findPersonalKeyByHash'>
  clock: Clock
  uses: Pick<SecretUses, 'note'>
}): PersonalKeyCheck {
  return createSecretCheck({
    clock: deps.clock,
    isWellFormed: secret => secret.startsWith(personalKeyPrefix),
    lookUp: hash => deps.management.findPersonalKeyByHash(hash),
    onFound: key => {
      deps.uses.note(key)
      return key
    },
  })
}
