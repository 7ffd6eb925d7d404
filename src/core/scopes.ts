// What a personal API key can be allowed, by PostHog's names. Which scope a route asks for stands with the route.

import { nearestName } from './nearest-name.ts'

/** What the private API has or is going to have. Source: PostHog's scopes; `import_job` is ours. */
export const scopeObjects = [
  'feature_flag',
  'project',
  'person',
  'group',
  'query',
  'user',
  'organization',
  'cohort',
  'early_access_feature',
  'survey',
  'experiment',
  'ingestion_warning',
  'event_definition',
  'property_definition',
  'session_recording',
  'import_job',
] as const

const knownScopes = new Set(['*', ...scopeObjects.flatMap(object => [`${object}:read`, `${object}:write`])])

/** More is no typing error. */
const comparedCharsMax = 40

export function isKnownScope(scope: string): boolean {
  return knownScopes.has(scope)
}

/** The scope that was probably meant. It never says write where nobody wrote that. */
export function nearestScope(scope: string): string {
  const [object = '', action] = scope.slice(0, comparedCharsMax).toLowerCase().split(/[:.]/)
  const nearest = nearestName(object, scopeObjects, known => [known, ...known.split('_')])
  return `${nearest}:${action === 'write' ? 'write' : 'read'}`
}
