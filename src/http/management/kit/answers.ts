// Answers of the private API as values, and the answer when a store fails.

import { MirrorFillingError, PortError, QueryTooLargeError } from '#ports/port-error.ts'
import { TooManyScansError } from '#services/scans/subject-scans.ts'
import { encodeWireError, type WireError, wireError } from '#wire/wire-error.ts'

export interface Answer {
  readonly status: number
  /** JSON text, as UTF-8 bytes when it is large; null for no body. */
  readonly json: string | Buffer | null
  readonly retryAfterSeconds?: number
  readonly setCookie?: string
}

export function answer(status: number, value: unknown): Answer {
  return { status, json: JSON.stringify(value) }
}

/** A list whose items are already JSON text. @param head the fields before `results`. */
export function listAnswer(head: object, items: readonly string[]): Answer {
  return { status: 200, json: `${JSON.stringify({ ...head, results: [] }).slice(0, -2)}${items.join(',')}]}` }
}

/** One step per item, so that other work may run in between (`runInSlices`). */
export function* encodeEachInSteps<T>(
  items: readonly T[],
  encode: (item: T) => string,
): Generator<undefined, string[]> {
  const texts: string[] = []
  for (const item of items) {
    texts.push(encode(item))
    yield
  }
  return texts
}

export const noContent: Answer = { status: 204, json: null }

/** @param extra fields in addition to the four fields of the error, as in PostHog. */
export function refusal(error: WireError, extra?: object): Answer {
  const json = encodeWireError(error)
  const body = extra === undefined ? json : `${json.slice(0, -1)},"extra":${JSON.stringify(extra)}}`
  return { status: error.status, json: body, ...(error.status === 503 ? { retryAfterSeconds: 1 } : {}) }
}

export function createRequiredError(attr: string): WireError {
  return wireError(400, 'required', 'This field is required.', attr)
}

/** The error for a value that has the wrong type or cannot be read as the right type. */
export function createInvalidError(attr: string | null, detail: string): WireError {
  return wireError(400, 'invalid', detail, attr)
}

/** The error for a value of the right type that is not acceptable. */
export function createInvalidInputError(attr: string, detail: string): WireError {
  return wireError(400, 'invalid_input', detail, attr)
}

export const notFoundHere = wireError(404, 'not_found', 'Not found.')

/** A 404. @param detail names the missing item, and another way to find it. */
export function createNotFoundError(detail: string): WireError {
  return wireError(404, 'not_found', detail)
}

export const stateUnavailable = wireError(503, 'state_unavailable', 'The state store is unavailable. Try again.')

/** For a write that kept conflicting with concurrent changes. Source: ours, docs/wire/private-api.md. */
export const changedAtOnce = wireError(
  409,
  'conflict',
  'Other requests kept changing data that this one depends on. Try again.',
)

export function createPermissionDeniedError(detail: string): WireError {
  return wireError(403, 'permission_denied', detail)
}

/**
 * Runs a query. A failure of the event store becomes a 503 that says what failed, or a 400 when the query is too large to
 * ever succeed. A timeout is a 503, since the query may have waited for other queries. Source: ours.
 */
export async function answerFromEventStore<A>(query: () => Promise<A>): Promise<A | Answer> {
  try {
    return await query()
  } catch (error) {
    if (!(error instanceof PortError)) throw error
    if (error instanceof MirrorFillingError) return refusal(mirrorFilling)
    if (error instanceof QueryTooLargeError && error.code === 'full') return refusal(queryTooLarge)
    return refusal(eventStoreErrors.get(error.code) ?? eventStoreUnavailable)
  }
}

const eventStoreUnavailable = wireError(503, 'event_store_unavailable', 'The event store is unavailable. Try again.')
/** Source: ours, docs/wire/private-api.md. */
const mirrorFilling = wireError(
  503,
  'persons_filling',
  'Persons and groups are still being copied into the event store; queries that use them work afterwards. Try again later.',
)
const queryTooLarge = wireError(
  400,
  'query_too_large',
  'The query exceeds its memory limit, or its result is too large. Request a shorter time range, longer intervals or fewer values.',
)
const eventStoreErrors = new Map([
  ['timeout', wireError(503, 'event_store_timeout', 'The query took too long. Request less data, or try again.')],
  [
    'full',
    wireError(
      503,
      'event_store_busy',
      'Too many queries of this project are queued, or running queries use all available memory. Try again.',
    ),
  ],
])

export async function answerFromScan<A>(scan: () => Promise<A>): Promise<A | Answer> {
  try {
    return await scan()
  } catch (error) {
    if (!(error instanceof TooManyScansError)) throw error
    return { ...refusal(tooManyScans), retryAfterSeconds: 5 }
  }
}

const tooManyScans = wireError(
  429,
  'too_many_scans',
  'Too many searches through the persons or groups of this project are running. Try again when one of them has ended.',
)
