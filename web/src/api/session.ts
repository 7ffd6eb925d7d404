// Who is signed in, and in which project they are.

import { queryOptions } from '@tanstack/react-query'
import { call } from './client.ts'
import type { Operations } from './schema.ts'

export type SignedIn = Operations['GET /api/session/']['answer']

export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => call('GET /api/session/', { signal }),
  // A change is announced by the answers of other calls: one of an ended session is refused.
  staleTime: Number.POSITIVE_INFINITY,
  retry: false,
})

/** Whether the session's scopes include one: by name, by `*`, or by the write scope that contains it. */
export function holdsScope(scopes: readonly string[], scope: string): boolean {
  return scopes.includes('*') || scopes.includes(scope) || scopes.includes(scope.replace(/:read$/, ':write'))
}
