// Every refusal of a whole v1 capture request, with the tags and texts of PostHog's capture. `docs/wire/errors.md`
// lists them and how SDKs react. `batch-response.ts` has the results of single events.
// Source: docs/wire/ingestion.md 4.2.

import { STATUS_CODES } from 'node:http'
import { captureItemCountMax, captureValueCountMax } from '../capture/capture-errors.ts'
import { type WireError, wireError } from '../wire-error.ts'

export const v1BodyBytesMax = 10 * 1024 * 1024
export const v1DecodedBytesMax = 50 * 1024 * 1024

/** `Retry-After`, in seconds, of answers after which clients send the same request again. */
export const v1RetryAfterSeconds = 1

const unparsable = 'Failed to parse request body.'

export const v1CaptureErrors = {
  missingAuthorization: wireError(401, 'missing_authorization', 'request is missing the Authorization header'),
  invalidApiToken: wireError(401, 'invalid_api_token', 'The provided API token is not valid.', 'Authorization'),
  bodyTooLarge: createTooLargeError(`Request body exceeds limit of ${v1BodyBytesMax} bytes`),
  decodedTooLarge: createTooLargeError(
    `Decompressed body exceeds limit of ${v1DecodedBytesMax} bytes, or of what its compressed size may stand for`,
  ),
  tooManyValues: createTooLargeError(`Request holds more than ${captureValueCountMax} values`),
  tooManyItems: createTooLargeError(`Request holds more than ${captureItemCountMax} events`),
  emptyBody: wireError(400, 'empty_body', 'request body is empty'),
  undecodable: wireError(400, 'request_decoding_error', 'Failed to decode request body.', 'Content-Encoding'),
  emptyBatch: wireError(400, 'empty_batch', 'request batch is empty', 'batch'),
  billingLimit: wireError(
    402,
    'billing_limit_exceeded',
    'Billing quota exceeded. Events are being dropped. Upgrade your plan to resume ingestion.',
  ),
  bodyReadTimeout: wireError(408, 'body_read_timeout', 'body read stalled before the request was complete'),
  unavailable: wireError(503, 'service_unavailable', 'Service Unavailable'),
} as const

function createTooLargeError(text: string): WireError {
  return wireError(413, 'payload_too_large', `payload too large: ${text}`)
}

/** @param names the missing headers, in the documented order. */
export function createMissingHeadersError(names: readonly string[]): WireError {
  const list = names.map(name => JSON.stringify(name)).join(', ')
  return wireError(400, 'missing_required_headers', `request is missing required headers: [${list}]`, names[0])
}

export function createInvalidHeaderError(name: string, reason: string): WireError {
  return wireError(400, 'invalid_header_value', `invalid header value: ${reason}`, name)
}

export function createBatchContentTypeError(sent: string): WireError {
  return wireError(415, 'unsupported_content_type', `unsupported content type: ${shortenValue(sent)}`, 'Content-Type')
}

export function createEncodingError(sent: string): WireError {
  return wireError(
    415,
    'unsupported_encoding',
    `unsupported content encoding: ${shortenValue(sent)}`,
    'Content-Encoding',
  )
}

/** @param field the first faulty field, such as `batch.3.uuid`; null for text that is not a JSON object. */
export function createUnparsableBodyError(field: string | null): WireError {
  return wireError(400, 'request_parsing_error', unparsable, field)
}

export function createInvalidCreatedAtError(sent: string): WireError {
  const text = `invalid batch: created_at is not valid RFC 3339: ${shortenValue(sent)}`
  return wireError(400, 'invalid_batch', text, 'created_at')
}

export function createMissingUuidError(index: number): WireError {
  return wireError(400, 'missing_event_uuid', 'event submitted without a uuid', `batch.${index}.uuid`)
}

export function createInvalidUuidError(sent: string, index: number): WireError {
  return wireError(400, 'invalid_event_uuid', `invalid event uuid: ${shortenValue(sent)}`, `batch.${index}.uuid`)
}

export function createDuplicateUuidError(sent: string, index: number): WireError {
  return wireError(400, 'duplicate_event_uuid', `duplicate event uuid: ${shortenValue(sent)}`, `batch.${index}.uuid`)
}

/** Limits how much of a value from the request an answer repeats. */
const shownLengthMax = 200

export function shortenValue(sent: string): string {
  return sent.slice(0, shownLengthMax).toWellFormed()
}

const docsUri = 'https://posthog.com/docs/api'
const billingUri = 'https://posthog.com/docs/billing/limits'

/** Encodes errors in the form of the v1 protocol, including errors that the HTTP server itself finds. */
export function encodeV1Error({ status, code, detail }: WireError): string {
  return JSON.stringify({
    // The protocol has no tag for faults that the HTTP server finds before it reads the request.
    error: code === 'invalid_request' ? 'request_decoding_error' : code,
    error_description: status >= 500 ? STATUS_CODES[status] : detail,
    error_uri: status === 402 ? billingUri : docsUri,
  })
}
