// Answers of the private API as values, and what a failure of a store looks like to a caller.

import { PortError } from '#ports/port-error.ts'
import { inSlices } from '#services/shared/in-slices.ts'
import { encodeWireError, type WireError, wireError } from '#wire/wire-error.ts'

export interface Answer {
  readonly status: number
  /** JSON text, in UTF-8 where it is large; null = no body. */
  readonly json: string | Buffer | null
  readonly retryAfterSeconds?: number
}

export function answer(status: number, value: unknown): Answer {
  return { status, json: JSON.stringify(value) }
}

/** A list whose items are JSON text already. @param head what stands before `results`. */
export function listAnswer(head: object, items: readonly string[]): Answer {
  return { status: 200, json: `${JSON.stringify({ ...head, results: [] }).slice(0, -2)}${items.join(',')}]}` }
}

/** A list of megabytes: the event loop has its turn between the items. */
export async function longListAnswer<T>(
  head: object,
  items: readonly T[],
  encode: (item: T) => string,
): Promise<Answer> {
  return listAnswer(head, await inSlices(encodeEach(items, encode)))
}

function* encodeEach<T>(items: readonly T[], encode: (item: T) => string): Generator<undefined, string[]> {
  const texts: string[] = []
  for (const item of items) {
    texts.push(encode(item))
    yield
  }
  return texts
}

export const noContent: Answer = { status: 204, json: null }

/** `extra` stands beside the four fields of the error, as in PostHog. */
export function refusal(error: WireError, extra?: object): Answer {
  const json = encodeWireError(error)
  const body = extra === undefined ? json : `${json.slice(0, -1)},"extra":${JSON.stringify(extra)}}`
  return { status: error.status, json: body, ...(error.status === 503 ? { retryAfterSeconds: 1 } : {}) }
}

export function required(attr: string): WireError {
  return wireError(400, 'required', 'This field is required.', attr)
}

/** Answers a value of another type than asked for, or one that cannot be read as that type. */
export function invalid(attr: string | null, detail: string): WireError {
  return wireError(400, 'invalid', detail, attr)
}

/** Answers a value of the right type that does not work. */
export function invalidInput(attr: string, detail: string): WireError {
  return wireError(400, 'invalid_input', detail, attr)
}

export const notFoundHere = wireError(404, 'not_found', 'Not found.')

/** A 404 that says what was looked for, and how else to find it. */
export function missing(detail: string): WireError {
  return wireError(404, 'not_found', detail)
}

export const stateUnavailable = wireError(503, 'state_unavailable', 'The state cannot be reached; try again.')

export function permissionDenied(detail: string): WireError {
  return wireError(403, 'permission_denied', detail)
}

/** Runs a query and turns a failure of the event store into a 503 that says what failed. Source: ours. */
export async function answerFromEventStore(query: () => Promise<Answer>): Promise<Answer> {
  try {
    return await query()
  } catch (error) {
    if (!(error instanceof PortError)) throw error
    return refusal(eventStoreErrors.get(error.code) ?? eventStoreUnavailable)
  }
}

const eventStoreUnavailable = wireError(503, 'event_store_unavailable', 'The event store cannot be reached; try again.')
const eventStoreErrors = new Map([
  ['timeout', wireError(503, 'event_store_timeout', 'The query took too long. Ask for less, or try again.')],
  ['full', wireError(503, 'event_store_busy', 'Too many queries of this project are waiting; try again.')],
])
