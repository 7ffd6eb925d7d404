// An error as a path answers it: its status and its body; and the errors that all paths share. `docs/wire/errors.md`
// lists all errors and how SDKs react to them.

/** The JSON error body: old SDKs retry on a body that is not JSON. Source: docs/wire/ingestion.md 1.7; evaluation.md 3. */
export interface WireError {
  readonly status: number
  readonly type: WireErrorType
  readonly code: string
  readonly detail: string
  readonly attr: string | null
  /** The remedy in Pennon, when PostHog's text names another one. When absent, the body has no `hint`. */
  readonly hint?: string
}

export const wireErrorTypes = [
  'validation_error',
  'authentication_error',
  'quota_limited',
  'invalid_request',
  'throttled_error',
  'server_error',
] as const
export type WireErrorType = (typeof wireErrorTypes)[number]

const typeOfStatus: Record<number, WireErrorType> = {
  400: 'validation_error',
  401: 'authentication_error',
  402: 'quota_limited',
  403: 'authentication_error',
  404: 'invalid_request',
  405: 'invalid_request',
  408: 'invalid_request',
  409: 'validation_error',
  413: 'validation_error',
  415: 'validation_error',
  429: 'throttled_error',
  431: 'invalid_request',
}

/** Whether a value is an error that is ready to be sent, and not a service's refusal. */
export function isWireError(error: string | object): error is WireError {
  return typeof error === 'object' && 'status' in error
}

/** An error whose type follows from its status. */
export function wireError(status: number, code: string, detail: string, attr: string | null = null): WireError {
  return { status, type: typeOfStatus[status] ?? 'server_error', code, detail, attr }
}

export function encodeWireError(error: WireError): string {
  const { type, code, detail, attr, hint } = error
  return JSON.stringify({ type, code, detail, attr, hint })
}

export const notFound = wireError(404, 'not_found', 'Unknown path. GET /api/schema/ lists all endpoints.')
/** For an unknown path on the public protocols' port, when the private API and its schema have a separate port. */
export const unknownPublicPath = wireError(
  404,
  'not_found',
  'Unknown path: this port serves SDKs only. The private API and its /api/schema/ are on another port.',
)

/** Whether the `detail` of an answer says that its address is wrong, not that the requested item is missing. */
export function isUnknownPathDetail(detail: unknown): boolean {
  return detail === notFound.detail || detail === unknownPublicPath.detail
}

/** @param allowed the methods that the path accepts. */
export function createMethodNotAllowedError(method: string, allowed: readonly string[]): WireError {
  const detail = `Method "${method}" is not allowed on this path. Allowed: ${allowed.join(', ')}.`
  return wireError(405, 'method_not_allowed', detail)
}

export const internalError = wireError(
  500,
  'internal_error',
  'An internal server error occurred. Please try again later.',
)
