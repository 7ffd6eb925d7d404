// The errors of `/decide` and `/flags`: status, code and the sentence that SDKs show. docs/wire/errors.md says how
// clients react to each. Source: docs/wire/evaluation.md 3.

import { type WireError, wireError } from '../wire-error.ts'

function createDecodingError(code: string, message: string): WireError {
  const detail = `Failed to decode request: ${message}. Please check your request format and try again.`
  return wireError(400, code, detail)
}

export const bodyBytesMax = 2 * 1024 * 1024
export const decompressedBytesMax = 4 * 1024 * 1024

export const decideErrors = {
  invalidJson: createDecodingError('invalid_json', 'invalid JSON'),
  invalidJsonStructure: createDecodingError('invalid_json', 'invalid JSON structure'),
  invalidGzip: createDecodingError('invalid_compression', 'the body cannot be decompressed'),
  unsupportedCompression: createDecodingError('unsupported_compression', 'Unsupported compression type'),
  gzipInForm: createDecodingError('unsupported_compression', 'Gzip compression not supported for form-urlencoded data'),
  invalidQuery: wireError(400, 'invalid_query', 'Failed to deserialize query string: sent_at must be an integer.'),
  missingApiKey: wireError(
    401,
    'not_authenticated',
    'No API token provided. Please include a valid API token in your request.',
  ),
  unknownApiKey: wireError(
    401,
    'authentication_failed',
    'The provided API key is invalid or has expired. Please check your API key and try again.',
  ),
  secretKeyAsToken: wireError(
    401,
    'authentication_failed',
    'The provided API key is invalid or has expired. Please check your API key and try again. ' +
      'It is a secret key: flags take the project API key, phc_…',
  ),
  missingDistinctId: wireError(
    400,
    'missing_distinct_id',
    'The distinct_id field is missing from the request. Please include a valid identifier.',
  ),
  bodyTooLarge: wireError(413, 'payload_too_large', `Failed to buffer the request body: over ${bodyBytesMax} bytes.`),
  decompressedTooLarge: wireError(
    413,
    'payload_too_large',
    `Decompressed request body exceeded ${decompressedBytesMax} bytes (got at least ${decompressedBytesMax + 1}). ` +
      'If this is a legitimate workload, send fewer properties with each request.',
  ),
  tooManyValues: wireError(
    413,
    'payload_too_large',
    'The request body holds too many values to be read. Send only the properties that flags use.',
  ),
  transient: wireError(503, 'transient_error', 'transient error, please retry'),
} as const satisfies Record<string, WireError>

const contentTypeCharsMax = 200

/** For a visitor without cookies. @param name the fact about the visitor that the request does not show. */
export function createMissingPropertyError(name: 'ip' | 'host' | 'user_agent'): WireError {
  return wireError(400, 'missing_property', `Missing required property: ${name}`)
}

export function createFlagsContentTypeError(contentType: string): WireError {
  const shown = contentType.slice(0, contentTypeCharsMax)
  return createDecodingError('unsupported_content_type', `unsupported content type: ${shown}`)
}
