// Every refusal of the v0 capture paths, with the texts of PostHog's capture. `docs/wire/errors.md` lists them and how
// SDKs react; `capture-body.ts`, `capture-request.ts` and the handler choose among them.
// Source: docs/wire/ingestion.md 1.4, 1.7; docs/wire/service.md §7.2 leaves them open.

import type { EventRefusal } from '#core/capture/normalize-event.ts'
import { aiEventBytesMax, eventBytesMax } from '#core/capture/normalize-event.ts'
import { type WireError, wireError } from '../wire-error.ts'
import { whereToFindProjectKeys } from './project-token.ts'

export const captureBodyBytesMax = 20 * 1024 * 1024
/** A decompressed body may be five times as large as the largest body on the wire. Source: docs/wire/ingestion.md 9. */
export const captureDecodedBytesMax = 5 * captureBodyBytesMax

/** Each parsed value takes tens of bytes, so this bounds the memory and time of a decode thread. Source: ours. */
export const captureValueCountMax = 5_000_000

/**
 * The maximum number of items in one request, on every capture path. SDKs send up to 1,000 and importers up to 5,000.
 * Without a bound, 75 KB of gzip could hold a million events, which take a minute of the worker's time. Source: ours.
 */
export const captureItemCountMax = 50_000

export const captureErrors = {
  bodyTooLarge: createTooLargeError(`Request body exceeds limit of ${captureBodyBytesMax} bytes`),
  decodedTooLarge: createTooLargeError(
    `Decompressed body exceeds limit of ${captureDecodedBytesMax} bytes, or of what its compressed size may stand for`,
  ),
  tooManyValues: createTooLargeError(`Request holds more than ${captureValueCountMax} values`),
  tooManyItems: createTooLargeError(`Request holds more than ${captureItemCountMax} events`),
  bodyReadTimeout: wireError(408, 'body_read_timeout', 'client stopped sending data'),
  missingPayload: wireError(400, 'missing_payload', 'request missing data payload'),
  formExpected: createDecodeError('invalid_form', 'expected form data in POST request payload'),
  invalidForm: createDecodeError('invalid_form', 'invalid urlencoded form data'),
  invalidGzip: createDecodeError('invalid_compressed_data', 'invalid GZIP data'),
  invalidGzipText: createDecodeError('invalid_utf8', 'invalid gzip data'),
  invalidUtf8: createDecodeError('invalid_utf8', 'invalid UTF8 in request payload'),
  invalidLz64: createDecodeError('invalid_compressed_data', 'decompress_lz64: failed decompress to UTF16'),
  invalidLz64Text: createDecodeError('invalid_utf8', 'decompress_lz64: failed UTF16 to UTF8 conversion'),
  nestedTooDeep: createParseError('invalid_json', 'recursion limit exceeded'),
  loneSurrogate: createParseError('invalid_json', 'lone surrogate in a unicode escape'),
  emptyBatch: wireError(400, 'empty_batch', 'request holds no event', 'batch'),
  missingApiKey: wireError(401, 'missing_api_key', 'event submitted without an api_key', 'api_key'),
  inconsistentApiKeys: wireError(
    401,
    'inconsistent_api_keys',
    'batch submitted with inconsistent api_key values',
    'api_key',
  ),
  // Clients compare the text, so it is exactly PostHog's. It names settings that Pennon lacks; the hint corrects it.
  unknownApiKey: {
    ...wireError(
      401,
      'unknown_api_key',
      'API key does not belong to any project. Check the project API key in your PostHog project settings',
      'api_key',
    ),
    hint: whereToFindProjectKeys,
  },
  transient: wireError(503, 'transient_error', 'transient error, please retry'),
} as const

function createTooLargeError(text: string, attr?: string): WireError {
  return wireError(413, 'payload_too_large', `maximum event size exceeded: ${text}`, attr)
}

function createDecodeError(code: string, text: string): WireError {
  return wireError(400, code, `failed to decode request: ${text}`)
}

function createParseError(code: string, text: string, attr: string | null = null): WireError {
  return wireError(400, code, `failed to parse request: ${text}`, attr)
}

export function createInvalidQueryError(parameter: string): WireError {
  const text = `Failed to deserialize query string: ${parameter} is not an integer, or is given twice`
  return wireError(400, 'invalid_query', text, parameter)
}

export function createInvalidJsonError(parserMessage: string): WireError {
  return createParseError('invalid_json', parserMessage)
}

/** @param attr the first field that fits no accepted shape, such as `batch.3.uuid`; null when no field is at fault. */
export function createUnknownShapeError(attr: string | null): WireError {
  return createParseError('invalid_shape', 'data did not match any variant of untagged enum RawRequest', attr)
}

export type ApiKeyFault = 'empty' | 'too_long' | 'not_ascii' | 'personal_api_key' | 'null_byte'

export function createInvalidApiKeyError(fault: ApiKeyFault): WireError {
  return wireError(401, 'invalid_api_key', `API key is not valid: ${fault}`, 'api_key')
}

/** One text for every object that is neither an event nor an envelope. Source: docs/wire/ingestion.md 1.7, 2.1. */
export function createHydrationError(
  code: 'missing_event_name' | 'missing_api_key' | 'invalid_shape',
  attr: string,
): WireError {
  const text = 'failed to hydrate events from request: non-engage request missing event name attribute'
  return wireError(400, code, text, attr)
}

/**
 * The answer to a request that is refused because of one event.
 * @param attr the faulty field with its place, such as `batch.3.distinct_id`; when absent, the field alone is named.
 */
export function createEventRefusedError(refusal: EventRefusal, attr?: string): WireError {
  return attr === undefined ? refusals[refusal] : { ...refusals[refusal], attr }
}

const refusals: Record<EventRefusal, WireError> = {
  missing_event_name: wireError(400, 'missing_event_name', 'event submitted with an empty event name', 'event'),
  timestamp_invalid: wireError(400, 'timestamp_invalid', 'event submitted with an unreadable timestamp', 'timestamp'),
  missing_distinct_id: wireError(400, 'missing_distinct_id', 'event submitted without a distinct_id', 'distinct_id'),
  invalid_cookieless_mode: wireError(
    400,
    'invalid_cookieless_mode',
    'event submitted with invalid cookieless mode',
    '$cookieless_mode',
  ),
  event_too_large: createTooLargeError(`Event exceeds limit of ${eventBytesMax} bytes`, 'properties'),
  ai_event_too_large: wireError(
    413,
    'payload_too_large',
    `maximum AI event size exceeded: Event exceeds limit of ${aiEventBytesMax} bytes`,
    'properties',
  ),
}
