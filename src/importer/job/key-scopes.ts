// The scopes that an import's personal key needs, shared by help, plans and refusals.

export const importKeyScopes: readonly string[] = ['import_job:write', 'project:read', 'query:read', 'person:read']

export function formatScopes(scopes: readonly string[]): string {
  return scopes.length < 2 ? scopes.join('') : `${scopes.slice(0, -1).join(', ')} and ${scopes.at(-1)}`
}

export const importKeyScopeList: string = formatScopes(importKeyScopes)

/** @param given a key's scopes: `*` stands for all of them, and a `:write` scope includes `:read`. */
export function findMissingScopes(given: readonly string[]): readonly string[] {
  if (given.includes('*')) return []
  return importKeyScopes.filter(scope => !given.includes(scope) && !given.includes(scope.replace(/:read$/, ':write')))
}
