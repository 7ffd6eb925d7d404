// Who is signed in, and in which project they are.

import { queryOptions } from '@tanstack/react-query'
import { ApiError, call } from './client.ts'
import { noteSession } from './connection.ts'
import { queries } from './queries.ts'
import type { Operations } from './schema.ts'

export type SignedIn = Operations['GET /api/session/']['answer']

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async ({ signal }) => {
    const session = await call('GET /api/session/', { signal })
    noteSession()
    return session
  },
  staleTime: Number.POSITIVE_INFINITY,
  // Somebody may have signed in or out in another tab, or have got other rights.
  refetchOnWindowFocus: 'always',
  retry: false,
})

/**
 * Begins a session with nothing of another one left.
 * @param signIn the call that signs in.
 * @throws Error when the browser does not keep the session: over plain http it drops the cookie of an https address.
 */
export async function beginSession(signIn: () => Promise<SignedIn>): Promise<void> {
  await signIn()
  try {
    const session = await call('GET /api/session/')
    queries.clear()
    queries.setQueryData(sessionQuery.queryKey, session)
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error
    throw new Error(
      'Your browser did not keep the session. Open Pennon at its public address, which begins with https.',
    )
  }
}

/** Whether the session's scopes include one: by name, by `*`, or by the write scope that contains it. */
export function holdsScope(scopes: readonly string[], scope: string): boolean {
  return scopes.includes('*') || scopes.includes(scope) || scopes.includes(scope.replace(/:read$/, ':write'))
}
