// The headers of a v1 capture request, which hold everything that the protocol sends outside the body. They are checked
// before the body is read, in an order that clients can observe.

import { parseStrictTimestampText } from '#core/capture/timestamp-text.ts'
import type { ClientSdk } from '#core/events/captured-event.ts'
import { parseUuid } from '#core/events/uuid.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { RequestHeaders } from '../address/client-address.ts'
import { findTokenFault } from '../capture/capture-token.ts'
import type { WireError } from '../wire-error.ts'
import {
  createBatchContentTypeError,
  createEncodingError,
  createInvalidHeaderError,
  createMissingHeadersError,
  shortenValue,
  v1CaptureErrors,
} from './batch-errors.ts'

/** '' for a body without an encoding. */
export type V1Encoding = '' | 'gzip' | 'deflate' | 'br' | 'zstd'

export interface V1Headers {
  /** A well-formed key, which need not belong to a project. */
  readonly token: string
  readonly encoding: V1Encoding
  /** `PostHog-Request-Timestamp`: when this attempt was sent, epoch ms, by the client's clock. */
  readonly sentAtMs: number
  readonly sdk: ClientSdk | null
}

export interface V1HeaderRefusal {
  readonly error: WireError
  /** The key, when the fault was found after reading it; else null. */
  readonly token: string | null
}

/** Every answer returns this header. */
export const requestIdHeader = 'posthog-request-id'

/** Names as in the error for missing headers; Node's own names are in lower case. */
const requiredHeaders = [
  'PostHog-Sdk-Info',
  'PostHog-Attempt',
  'PostHog-Request-Id',
  'PostHog-Request-Timestamp',
  'content-type',
  'user-agent',
].map(name => ({ name, key: name.toLowerCase() }))

const attemptMax = 0xffff_ffff
/** A longer header is ignored, since it would be copied into every event of the batch. */
const sdkInfoLengthMax = 200

/**
 * @returns the headers, or the first fault in a fixed order; all missing headers are one fault.
 * Source: docs/wire/ingestion.md 4.1, 4.2 (order).
 */
export function readV1Headers(headers: RequestHeaders): Result<V1Headers, V1HeaderRefusal> {
  const authorization = readHeaderText(headers, 'authorization')
  if (authorization === null) return refuseHeaders(v1CaptureErrors.missingAuthorization)
  const missing = requiredHeaders.filter(({ key }) => headers[key] === undefined)
  if (missing.length > 0) return refuseHeaders(createMissingHeadersError(missing.map(({ name }) => name)))

  if (!isVisible(authorization)) return refuseHeaders(createNonVisibleError('authorization'))
  if (!/^bearer /i.test(authorization)) {
    return refuseHeaders(createInvalidHeaderError('Authorization', 'Authorization must use Bearer scheme'))
  }
  const token = authorization.slice('bearer '.length).trim()
  if (findTokenFault(token) !== null) return refuseHeaders(v1CaptureErrors.invalidApiToken)
  const rest = readRemainingHeaders(headers)
  return rest.ok ? ok({ token, ...rest.value }) : refuseHeaders(rest.error, token)
}

function readRemainingHeaders(headers: RequestHeaders): Result<Omit<V1Headers, 'token'>, WireError> {
  const contentType = readHeaderText(headers, 'content-type')!
  if (!isVisible(contentType)) return err(createNonVisibleError('content-type'))
  if (parseMediaType(contentType) !== 'application/json') return err(createBatchContentTypeError(contentType))
  const encoding = readEncoding(readHeaderText(headers, 'content-encoding'))
  if (!encoding.ok) return encoding

  const requestId = readHeaderText(headers, requestIdHeader)!
  if (parseUuid(requestId) === null)
    return err(
      createInvalidHeaderError(
        'PostHog-Request-Id',
        `PostHog-Request-Id is not a valid UUID: ${shortenValue(requestId)}`,
      ),
    )
  const attempt = readHeaderText(headers, 'posthog-attempt')!
  if (!isAttempt(attempt))
    return err(
      createInvalidHeaderError(
        'PostHog-Attempt',
        `PostHog-Attempt must be a positive integer: ${shortenValue(attempt)}`,
      ),
    )
  const sent = readHeaderText(headers, 'posthog-request-timestamp')!
  const sentAtMs = parseStrictTimestampText(sent)
  if (sentAtMs === null) {
    const text = `PostHog-Request-Timestamp is not valid RFC 3339: ${shortenValue(sent)}`
    return err(createInvalidHeaderError('PostHog-Request-Timestamp', text))
  }
  if (!isVisible(readHeaderText(headers, 'user-agent')!)) return err(createNonVisibleError('user-agent'))
  return ok({ encoding: encoding.value, sentAtMs, sdk: readSdk(readHeaderText(headers, 'posthog-sdk-info')!) })
}

function readEncoding(sent: string | null): Result<V1Encoding, WireError> {
  if (sent === null) return ok('')
  if (!isVisible(sent)) return err(createNonVisibleError('content-encoding'))
  const encoding = sent.toLowerCase()
  switch (encoding) {
    case 'gzip':
    case 'deflate':
    case 'br':
    case 'zstd':
      return ok(encoding)
    default:
      return err(createEncodingError(sent))
  }
}

/** `name/version`, split at the last slash. Other text is not a fault; the library is then unknown. */
function readSdk(info: string): ClientSdk | null {
  const slash = info.lastIndexOf('/')
  if (slash === -1 || info.length > sdkInfoLengthMax || !isVisible(info)) return null
  const name = info.slice(0, slash).trim()
  const version = info.slice(slash + 1).trim()
  return name === '' || version === '' ? null : { name, version }
}

function isAttempt(text: string): boolean {
  if (!/^\+?\d+$/.test(text)) return false
  const attempt = Number(text)
  return attempt >= 1 && attempt <= attemptMax
}

function parseMediaType(contentType: string): string {
  return contentType.split(';', 1)[0]!.trim().toLowerCase()
}

/** Whether text has only visible ASCII, blanks and tabs. */
function isVisible(text: string): boolean {
  return /^[\t\x20-\x7e]*$/.test(text)
}

function createNonVisibleError(name: string): WireError {
  return createInvalidHeaderError(name, `${name} contains non-visible ASCII characters`)
}

/** Node joins repeats of these headers or keeps the first one; none becomes a list. */
function readHeaderText(headers: RequestHeaders, key: string): string | null {
  const value = headers[key]
  return value === undefined ? null : String(value)
}

function refuseHeaders(error: WireError, token: string | null = null): Result<never, V1HeaderRefusal> {
  return err({ error, token })
}
