// The project's public key in the query of browsers' GET requests, and the refusals of requests without a key. Source:
// docs/wire/evaluation.md 3.3, 7.4, 7.5.

import { wireError } from '../wire-error.ts'

/** @returns the key, from the first of a repeated parameter; null when absent. */
export function readProjectToken(query: { readonly token?: string | string[]; readonly api_key?: string | string[] }) {
  for (const sent of [query.token, query.api_key]) {
    const token = Array.isArray(sent) ? sent[0] : sent
    if (token !== undefined && token !== '') return token
  }
  return null
}

export const whereToFindProjectKeys =
  'GET /api/projects/ on this Pennon instance lists project API keys as api_token; one was printed on first start.'

export const missingProjectToken = wireError(401, 'missing_api_key', `API key not provided. ${whereToFindProjectKeys}`)
export const unknownProjectToken = wireError(
  401,
  'invalid_api_key',
  `Project API key invalid. ${whereToFindProjectKeys}`,
)
