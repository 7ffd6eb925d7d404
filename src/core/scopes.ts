// The scopes of personal API keys, by PostHog's names. Each route names the scope that it requires.

import { findNearestName } from './nearest-name.ts'

/** The objects that the private API has or will have. Source: PostHog's scopes; `import_job` is ours. */
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
  'activity_log',
] as const

const knownScopes = new Set(['*', ...scopeObjects.flatMap(object => [`${object}:read`, `${object}:write`])])

/** A longer text cannot be a mistyped scope, so only its start is compared. */
const comparedCharsMax = 40

export function isKnownScope(scope: string): boolean {
  return knownScopes.has(scope)
}

/** The scope that was probably meant: a write scope only if the text said `write`. */
export function findNearestScope(scope: string): string {
  const [object = '', action] = scope.slice(0, comparedCharsMax).toLowerCase().split(/[:.]/)
  const nearest = findNearestName(object, scopeObjects, known => [known, ...known.split('_')])
  return `${nearest}:${action === 'write' ? 'write' : 'read'}`
}
