// Finds a request's project key outside its body.

import type { FastifyRequest } from 'fastify'
import { type RawQuery, readTextParameters } from '#wire/capture/capture-query.ts'

/** The key from the query or otherwise from the header; null when neither has a key. Source: docs/wire/ingestion.md 2.4. */
export function readKeyOutsideBody(request: FastifyRequest): string | null {
  return readTextParameters(request.query as RawQuery).token ?? readHeaderKey(request)
}

/** The key from the header; null when it is absent or empty. */
export function readHeaderKey({ headers }: FastifyRequest): string | null {
  const key = headers['x-posthog-project-api-key']
  return (typeof key === 'string' ? key : key?.[0]) || null
}
