// Counts attempts to sign in, and remembers for how long they are refused, so that a flood of refused attempts costs the
// state nothing.

import type { AttemptKind } from '#core/users/sign-in-throttle.ts'
import type { Clock } from '#ports/clock.ts'
import type { SignInAttemptStore } from '#ports/state/user-store.ts'

export type SignInAttempts = ReturnType<typeof createSignInAttempts>

export type Throttled = { readonly kind: 'throttled'; readonly retryAfterMs: number }

const refusalCountMax = 10_000

export function createSignInAttempts(
  store: Pick<SignInAttemptStore, 'countSignInAttempt' | 'recordSignIn'>,
  clock: Clock,
) {
  const refusals = new Map<string, { readonly atMs: number; readonly retryAfterMs: number }>()

  return {
    /** @returns how long to wait; null when the attempt was counted. */
    async count(kind: AttemptKind, key: string): Promise<Throttled | null> {
      const name = `${kind}:${key}`
      const nowMs = clock.nowMs()
      const known = refusals.get(name)
      if (known !== undefined) {
        const agoMs = nowMs - known.atMs
        if (agoMs >= 0 && agoMs < known.retryAfterMs)
          return { kind: 'throttled', retryAfterMs: known.retryAfterMs - agoMs }
        refusals.delete(name)
      }
      const retryAfterMs = await store.countSignInAttempt(kind, key, nowMs)
      if (retryAfterMs === null) return null
      if (refusals.size >= refusalCountMax) refusals.clear()
      refusals.set(name, { atMs: nowMs, retryAfterMs })
      return { kind: 'throttled', retryAfterMs }
    },

    async recordSignIn(user: Parameters<SignInAttemptStore['recordSignIn']>[0]): Promise<void> {
      await store.recordSignIn(user, clock.nowMs())
      for (const name of [`user:${user.id}`, `home:${user.homeKey}`, `address:${user.network}`]) refusals.delete(name)
    },
  }
}
