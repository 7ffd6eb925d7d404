// Who is signed in, and in which project they are.

import { queryOptions } from '@tanstack/react-query'
import { call } from './client.ts'
import { noteSession } from './connection.ts'
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

/** Whether the session's scopes include one: by name, by `*`, or by the write scope that contains it. */
export function holdsScope(scopes: readonly string[], scope: string): boolean {
  return scopes.includes('*') || scopes.includes(scope) || scopes.includes(scope.replace(/:read$/, ':write'))
}
