// Every error a public path can answer: its status and its body. `docs/wire/errors.md` lists them with what SDKs do.

/** The JSON error body: old SDKs retry on a body that is not JSON. Source: docs/wire/ingestion.md 1.7; evaluation.md 3. */
export interface WireError {
  readonly status: number
  readonly type: WireErrorType
  readonly code: string
  readonly detail: string
  readonly attr: string | null
  /** Where Pennon's way out differs from what a text of PostHog's says. Absent: no such field in the body. */
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

/** An error with the type that its status stands for. */
export function wireError(status: number, code: string, detail: string, attr: string | null = null): WireError {
  return { status, type: typeOfStatus[status] ?? 'server_error', code, detail, attr }
}

export function encodeWireError(error: WireError): string {
  const { type, code, detail, attr, hint } = error
  return JSON.stringify({ type, code, detail, attr, hint })
}

export const notFound = wireError(
  404,
  'not_found',
  'There is nothing at this path. GET /api/schema/ lists what is served.',
)
/** Where the private API, and with it the schema, listens on a port of its own. */
export const notFoundOnWire = wireError(
  404,
  'not_found',
  'There is nothing at this path: this port serves SDKs. The private API and its /api/schema/ have a port of their own.',
)

export function methodNotAllowed(method: string): WireError {
  return wireError(405, 'method_not_allowed', `Method "${method}" is not allowed on this path.`)
}

export const internalError = wireError(
  500,
  'internal_error',
  'An internal server error occurred. Please try again later.',
)
