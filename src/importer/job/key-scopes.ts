// What the personal key of an import has to be allowed, in one place for help, plans and refusals.

export const importKeyScopes: readonly string[] = ['import_job:write', 'project:read', 'query:read', 'person:read']

export function listScopes(scopes: readonly string[]): string {
  return scopes.length < 2 ? scopes.join('') : `${scopes.slice(0, -1).join(', ')} and ${scopes.at(-1)}`
}

export const importKeyScopeList: string = listScopes(importKeyScopes)

/** @param given of a key; `*` is all of them, and whoever may write may read. */
export function missingScopes(given: readonly string[]): readonly string[] {
  if (given.includes('*')) return []
  return importKeyScopes.filter(scope => !given.includes(scope) && !given.includes(scope.replace(/:read$/, ':write')))
}
