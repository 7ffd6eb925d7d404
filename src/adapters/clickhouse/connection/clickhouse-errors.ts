// Translates failures of ClickHouse and of the connection to it into PortErrors, and knows which refusals of an insert
// are the rows' own fault.

import { AssertionError } from 'node:assert'
import { ClickHouseError } from '@clickhouse/client'
import { MirrorFillingError, PortError, type PortErrorCode, QueryTooLargeError } from '#ports/port-error.ts'
import { UnprovedServerError } from './proving-agent.ts'

/** The message with which queries of the mirror fail while it is being filled: see `queries/current-persons.ts`. */
export const fillingMessage = 'PENNON: persons and groups are being copied into the event store'

/**
 * The error codes that the same rows would always get again: the caller finds the row at fault and continues without it.
 */
const contentCodes: ReadonlySet<string> = new Set([
  '6', // CANNOT_PARSE_TEXT
  '27', // CANNOT_PARSE_INPUT_ASSERTION_FAILED
  '33', // CANNOT_READ_ALL_DATA
  '53', // TYPE_MISMATCH
  '69', // ARGUMENT_OUT_OF_BOUND
  '70', // CANNOT_CONVERT_TYPE
  '117', // INCORRECT_DATA
  '128', // TOO_LARGE_ARRAY_SIZE
  '131', // TOO_LARGE_STRING_SIZE
  '321', // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
  '376', // CANNOT_PARSE_UUID
  '467', // CANNOT_PARSE_BOOL
  '469', // VIOLATED_CONSTRAINT
])

const portCodes: Readonly<Record<string, PortErrorCode>> = {
  '40': 'corrupt', // CHECKSUM_DOESNT_MATCH
  '246': 'corrupt', // CORRUPTED_DATA
  '159': 'timeout', // TIMEOUT_EXCEEDED
  '160': 'timeout', // TOO_SLOW
  '202': 'full', // TOO_MANY_SIMULTANEOUS_QUERIES
  '243': 'full', // NOT_ENOUGH_SPACE
  '396': 'full', // TOO_MANY_ROWS_OR_BYTES
}

/** Maps the codes of errors that mean a read requests too much data to the reason: too much data, or too much time. */
const ownLimitCodes: Readonly<Record<string, QueryTooLargeError['code']>> = {
  '158': 'full', // TOO_MANY_ROWS
  '159': 'timeout', // TIMEOUT_EXCEEDED
  '160': 'timeout', // TOO_SLOW
  '241': 'full', // MEMORY_LIMIT_EXCEEDED
  '307': 'full', // TOO_MANY_BYTES
  '396': 'full', // TOO_MANY_ROWS_OR_BYTES: the caps of an answer
}

/**
 * Error codes of a request that was refused before it began: a retry at another endpoint or with another password may
 * succeed.
 */
const accessCodes: ReadonlySet<string> = new Set(['192', '193', '194', '516'])

/** Whether the user lacks a right that the statement needs. */
export function isAccessDenied(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && error.code === '497'
}

export function isErrorOfRowContent(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && contentCodes.has(error.code)
}

/**
 * Parses the errors of libraries within the engine, whose form (`std::exception. Code: 1001, type: …`) the client does not
 * know: it treats them as a broken connection. Source: observed, with an invalid state of `groupBitmap`.
 */
export function parseEngineError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof ClickHouseError) return error
  const form = /^(?:std::exception|Poco::Exception)\. Code: (\d+), (?:type: [^,]*, e\.what\(\) = )?(.*)$/s.exec(
    error.message,
  )
  return form === null ? error : new ClickHouseError({ code: form[1]!, message: form[2]! })
}

/** Whether memory ran out that all queries of a user or of the server share: the same query may work later. */
export function isOutOfSharedMemory({ code, message }: ClickHouseError): boolean {
  return (
    code === '241' && /\b(?:user|total)\)? memory limit exceeded|memory limit \((?:total|for user)\)/i.test(message)
  )
}

/** Whether the engine was restarted on another port or with other passwords, or has ended: read the endpoint again. */
export function requiresEndpointReload(thrown: unknown): boolean {
  const error = parseEngineError(thrown)
  if (error instanceof ClickHouseError) return accessCodes.has(error.code)
  return isConnectionError(error) && !isClientTimeout(error)
}

function isClientTimeout(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('Timeout error')
}

export function isUnknownDatabase(error: unknown): boolean {
  return error instanceof ClickHouseError && error.code === '81'
}

/**
 * @param during In a `read`, running out of memory or time means that the query is too large. In a `write`, it means that
 * the server is overloaded; like every unlisted refusal, it counts as `unavailable` and is retried, so that no row is lost.
 */
export function toStoreError(thrown: unknown, during: 'read' | 'write'): unknown {
  const error = parseEngineError(thrown)
  if (error instanceof PortError) return error
  if (error instanceof ClickHouseError) {
    if (error.code === '395' && error.message.includes(fillingMessage)) return new MirrorFillingError(error)
    if (during === 'read' && isOutOfSharedMemory(error)) return new PortError('event-store', 'full', error)
    const ownLimit = during === 'read' ? ownLimitCodes[error.code] : undefined
    if (ownLimit !== undefined) return new QueryTooLargeError('event-store', ownLimit, error)
    return new PortError('event-store', portCodes[error.code] ?? 'unavailable', error)
  }
  // The answer exceeds the longest possible string.
  if (error instanceof Error && 'code' in error && error.code === 'ERR_STRING_TOO_LONG')
    return new QueryTooLargeError('event-store', 'full', error)
  if (error instanceof Error && error.message.startsWith('Timeout'))
    return new PortError('event-store', 'timeout', error)
  return isConnectionError(error) ? new PortError('event-store', 'unavailable', error) : error
}

/**
 * The client has no class for connection errors: system errors have a code, other connection failures are plain Errors (a
 * socket that closed, an answer that is not from ClickHouse, the embedded engine's 404 for outdated passwords), and a
 * server that did not prove to be the engine has a separate class. Other errors are our own bugs.
 */
function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof AssertionError || error instanceof TypeError) return false
  if (error instanceof UnprovedServerError) return true
  return 'code' in error || Object.getPrototypeOf(error) === Error.prototype
}
