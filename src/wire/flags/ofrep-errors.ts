// The errors of the OFREP paths, in the protocol's own form. Only answers about a single flag have a `key`.
// Source: docs/wire/ofrep.md 4.

import type { WireError } from '../wire-error.ts'
import { missingProperty } from './decide-errors.ts'

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
/** Fewer than `/flags` reads, since the event loop parses them: as properties they take half a millisecond. Source: ours. */
export const ofrepValuesMax = 2 * 1024

export const ofrepErrors = {
  missingKey: ofrepError(
    401,
    'GENERAL',
    'No project API key was sent. Send it as Authorization: Bearer phc_…, or as X-API-Key.',
  ),
  unknownKey: ofrepError(401, 'GENERAL', 'The project API key does not belong to any project of this instance.'),
  notAnObject: ofrepError(400, 'PARSE_ERROR', 'The body must be a JSON object with a context.'),
  contextNotAnObject: ofrepError(400, 'INVALID_CONTEXT', 'The context must be a JSON object.'),
  invalidContext: ofrepError(
    400,
    'INVALID_CONTEXT',
    'targetingKey must be a string, the properties of each group an object, and nothing may be nested deeper than 128 levels.',
  ),
  targetingKeyMissing: ofrepError(
    400,
    'TARGETING_KEY_MISSING',
    'The context has no targetingKey. Send the distinct id of the user as targetingKey.',
  ),
  flagNotFound: ofrepError(
    404,
    'FLAG_NOT_FOUND',
    'The project has no such flag, or it is not served to this type of client.',
  ),
  bodyTooLarge: ofrepError(
    413,
    'GENERAL',
    `The body exceeds ${ofrepBodyBytesMax} bytes, compressed or decompressed, or uses brotli, which is not supported.`,
  ),
  tooManyValues: ofrepError(413, 'GENERAL', `The body has more than ${ofrepValuesMax} values.`),
  tooManyStreams: ofrepError(429, 'GENERAL', 'The project has reached its maximum number of open change streams.', 60),
  noMoreStreams: ofrepError(503, 'GENERAL', 'This instance has reached its maximum number of open change streams.', 60),
  visitorUnknown: ofrepError(503, 'GENERAL', 'Cookieless visitors cannot be identified at the moment.', 1),
  busy: ofrepError(503, 'GENERAL', 'Too many evaluations are queued.', 1),
  stopping: ofrepError(503, 'GENERAL', 'This instance is shutting down.', 1),
} as const satisfies Record<string, OfrepError>

export function ofrepError(
  status: number,
  errorCode: OfrepErrorCode,
  errorDetails: string,
  retryAfterSeconds: number | null = null,
): OfrepError {
  return { status, errorCode, errorDetails, retryAfterSeconds }
}

/** For a visitor without cookies. */
export function missingPropertyError(name: Parameters<typeof missingProperty>[0]): OfrepError {
  return ofrepError(400, 'INVALID_CONTEXT', missingProperty(name).detail)
}

/** @param retryAfterSeconds when to check again whether the project may ask for flags. */
export function overQuota(retryAfterSeconds: number): OfrepError {
  return ofrepError(429, 'GENERAL', "The project's quota of flag requests is used up.", retryAfterSeconds)
}

/** For a flag that could not be computed, which is the server's fault. @param reason a sentence. */
export function flagNotComputed(reason: string): OfrepError {
  return ofrepError(500, 'GENERAL', reason)
}

/** Converts an error from the body's decoder or the HTTP server. */
export function ofrepErrorOf({ status, detail }: WireError): OfrepError {
  return ofrepError(status, status === 400 ? 'PARSE_ERROR' : 'GENERAL', detail)
}

/** @param flagKey the flag of a request about one flag; null when it is about all, or the error concerns no flag. */
export function encodeOfrepError({ errorCode, errorDetails }: OfrepError, flagKey: string | null): string {
  return JSON.stringify(flagKey === null ? { errorCode, errorDetails } : { key: flagKey, errorCode, errorDetails })
}
