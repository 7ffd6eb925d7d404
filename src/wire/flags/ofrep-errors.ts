// The errors of the OFREP paths, in the protocol's own form. Only answers about a single flag have a `key`.
// Source: docs/wire/ofrep.md 4.

import type { WireError } from '../wire-error.ts'
import { createMissingPropertyError } from './decide-errors.ts'

export type OfrepErrorCode = 'PARSE_ERROR' | 'TARGETING_KEY_MISSING' | 'INVALID_CONTEXT' | 'FLAG_NOT_FOUND' | 'GENERAL'

export interface OfrepError {
  readonly status: number
  readonly errorCode: OfrepErrorCode
  readonly errorDetails: string
  /** Whole seconds; null when a retry does not help or may be done at once. */
  readonly retryAfterSeconds: number | null
}

/** A larger context is refused: it describes one user, not a database. Source: ours. */
export const ofrepBodyBytesMax = 256 * 1024
/**
 * Fewer values than `/flags` reads, since the event loop parses them: as properties, they take half a millisecond. Source:
 * ours.
 */
export const ofrepValuesMax = 2 * 1024

export const ofrepErrors = {
  missingKey: createOfrepError(
    401,
    'GENERAL',
    'No project API key was sent. Send it as Authorization: Bearer phc_…, or as X-API-Key.',
  ),
  unknownKey: createOfrepError(401, 'GENERAL', 'The project API key does not belong to any project of this instance.'),
  notAnObject: createOfrepError(400, 'PARSE_ERROR', 'The body must be a JSON object with a context.'),
  contextNotAnObject: createOfrepError(400, 'INVALID_CONTEXT', 'The context must be a JSON object.'),
  invalidContext: createOfrepError(
    400,
    'INVALID_CONTEXT',
    'targetingKey must be a string, the properties of each group an object, and nothing may be nested deeper than 128 levels.',
  ),
  targetingKeyMissing: createOfrepError(
    400,
    'TARGETING_KEY_MISSING',
    'The context has no targetingKey. Send the distinct id of the user as targetingKey.',
  ),
  flagNotFound: createOfrepError(
    404,
    'FLAG_NOT_FOUND',
    'The project has no such flag, or it is not served to this type of client.',
  ),
  bodyTooLarge: createOfrepError(
    413,
    'GENERAL',
    `The body exceeds ${ofrepBodyBytesMax} bytes, compressed or decompressed, or uses brotli, which is not supported.`,
  ),
  tooManyValues: createOfrepError(413, 'GENERAL', `The body has more than ${ofrepValuesMax} values.`),
  tooManyStreams: createOfrepError(
    429,
    'GENERAL',
    'The project has reached its maximum number of open change streams.',
    60,
  ),
  noMoreStreams: createOfrepError(
    503,
    'GENERAL',
    'This instance has reached its maximum number of open change streams.',
    60,
  ),
  visitorUnknown: createOfrepError(503, 'GENERAL', 'Cookieless visitors cannot be identified at the moment.', 1),
  busy: createOfrepError(503, 'GENERAL', 'Too many evaluations are queued.', 1),
  stopping: createOfrepError(503, 'GENERAL', 'This instance is shutting down.', 1),
} as const satisfies Record<string, OfrepError>

export function createOfrepError(
  status: number,
  errorCode: OfrepErrorCode,
  errorDetails: string,
  retryAfterSeconds: number | null = null,
): OfrepError {
  return { status, errorCode, errorDetails, retryAfterSeconds }
}

/** For a visitor without cookies. */
export function createOfrepPropertyError(name: Parameters<typeof createMissingPropertyError>[0]): OfrepError {
  return createOfrepError(400, 'INVALID_CONTEXT', createMissingPropertyError(name).detail)
}

/** @param retryAfterSeconds when to check again whether the project may ask for flags. */
export function createOverQuotaError(retryAfterSeconds: number): OfrepError {
  return createOfrepError(429, 'GENERAL', "The project's quota of flag requests is used up.", retryAfterSeconds)
}

/** For a flag that could not be computed, which is the server's fault. @param reason a sentence. */
export function createFlagNotComputedError(reason: string): OfrepError {
  return createOfrepError(500, 'GENERAL', reason)
}

/** Converts an error from the body's decoder or the HTTP server. */
export function toOfrepError({ status, detail }: WireError): OfrepError {
  return createOfrepError(status, status === 400 ? 'PARSE_ERROR' : 'GENERAL', detail)
}

/** @param flagKey the flag of a request about one flag; null when it is about all, or the error concerns no flag. */
export function encodeOfrepError({ errorCode, errorDetails }: OfrepError, flagKey: string | null): string {
  return JSON.stringify(flagKey === null ? { errorCode, errorDetails } : { key: flagKey, errorCode, errorDetails })
}
