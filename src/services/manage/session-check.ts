// Finds the session of a secret, for the requests that carry it in a cookie.

import { hasSessionEnded, type SignedIn } from '#core/users/session.ts'
import type { Clock } from '#ports/clock.ts'
import type { SessionStore } from '#ports/state/user-store.ts'
import type { RandomBytes } from './generate-key.ts'
import { createSecretCheck, type SecretCheck } from './secret-check.ts'
import type { SecretUses } from './secret-uses.ts'

export type SessionCheck = SecretCheck<SignedIn>

/** Finding a session counts as a use of it. */
export function createSessionCheck(deps: {
  management: Pick<SessionStore, 'findSession'>
  clock: Clock
  uses: Pick<SecretUses, 'note'>
}): SessionCheck {
  return createSecretCheck({
    clock: deps.clock,
    isWellFormed: secret => /^[\w-]{43}$/.test(secret),
    lookUp: hash => deps.management.findSession(hash),
    onFound: signedIn => {
      const { session } = signedIn
      if (hasSessionEnded(session, deps.clock.nowMs())) return null
      deps.uses.note({ id: session.id, lastUsedAtMs: session.lastSeenAtMs })
      return signedIn
    },
  })
}

/** 32 random bytes as 43 characters: the secret of a session, or the token of a link. */
export function generateToken(randomBytes: RandomBytes): string {
  return Buffer.from(randomBytes(32)).toString('base64url')
}
