// Calls of the private API, typed by its OpenAPI document. Numbers keep their literals, so that a document that is read,
// changed and saved again differs only in what was changed.

import { parseJson } from '#core/json.ts'
import { noteAnswer, noteEndOfSession, noteNoAnswer, noteSession } from './connection.ts'
import type { Operations } from './schema.ts'

type Input<Operation extends keyof Operations> = Omit<Operations[Operation], 'answer'> & {
  readonly signal?: AbortSignal
}
/** The input may be left out where everything in it may be. */
type Arguments<Operation extends keyof Operations> =
  Record<never, never> extends Input<Operation> ? [input?: Input<Operation>] : [input: Input<Operation>]

interface AnyInput {
  readonly path?: Readonly<Record<string, string | number>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
  readonly signal?: AbortSignal
}

const signsIn: ReadonlySet<keyof Operations> = new Set(['POST /api/session/', 'POST /api/session/link/'])

/** The API refused a request, or did not answer it. */
export class ApiError extends Error {
  /** 0 when there was no answer. */
  readonly status: number
  readonly code: string
  /** Path of the field at fault, joined by dots. */
  readonly attr: string | null
  /** When to try again, in ms since the epoch. */
  readonly retryAtMs: number | undefined
  /** Request id and time, for who is asked for help. */
  readonly details: string
  constructor(message: string, fields: Omit<ApiError, 'name' | 'message' | 'stack' | 'cause'>) {
    super(message)
    this.name = 'ApiError'
    this.status = fields.status
    this.code = fields.code
    this.attr = fields.attr
    this.retryAtMs = fields.retryAtMs
    this.details = fields.details
  }
}

/**
 * @param operation method and path, such as `GET /api/projects/{project_id}/`.
 * @returns the answer's body; null when it has none.
 * @throws ApiError
 */
export async function call<Operation extends keyof Operations>(
  operation: Operation,
  ...[input]: Arguments<Operation>
): Promise<Operations[Operation]['answer']> {
  const { path, query, body, signal } = (input ?? {}) as AnyInput
  const [method = 'GET', template = ''] = operation.split(' ')
  const askedAtMs = Date.now()
  const { response, text } = await fetchText(buildAddress(template, path, query), {
    method,
    headers: {
      // Another site cannot send this header, so what has it comes from these screens.
      'x-pennon-ui': '1',
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  })
  if (response.status === 401 && !operation.startsWith('POST /api/session/')) noteEndOfSession(askedAtMs)
  if (!response.ok) throw toApiError(response, text)
  if (signsIn.has(operation)) noteSession()
  return (text === '' ? null : parseAnswer(text)) as Operations[Operation]['answer']
}

export function buildAddress(
  template: string,
  path: Readonly<Record<string, string | number>> = {},
  query: Readonly<Record<string, unknown>> = {},
): string {
  const address = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name]!))
  const fields = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(fields.map(([name, value]) => [name, String(value)])).toString()
  return search === '' ? address : `${address}?${search}`
}

/** Statuses by which a proxy says that the server behind it does not answer. */
const noAnswerStatuses = [502, 504]

/** @throws ApiError with status 0 without a whole answer. */
async function fetchText(address: string, init: RequestInit): Promise<{ response: Response; text: string }> {
  try {
    const response = await fetch(address, init)
    const text = await response.text()
    if (noAnswerStatuses.includes(response.status)) noteNoAnswer()
    else noteAnswer()
    return { response, text }
  } catch (cause) {
    // A request that was given up says nothing about the server, one that took too long does.
    if (init.signal?.aborted && init.signal.reason?.name !== 'TimeoutError') throw cause
    noteNoAnswer()
    throw createUnansweredError('The server does not answer.', 'no_answer')
  }
}

function parseAnswer(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    throw createUnansweredError('The answer is not Pennon’s: is there something between?', 'bad_answer')
  }
}

function createUnansweredError(message: string, code: string): ApiError {
  const details = `${code}, ${new Date().toISOString()}`
  return new ApiError(message, { status: 0, code, attr: null, retryAtMs: undefined, details })
}

export function toApiError({ status, headers }: Pick<Response, 'status' | 'headers'>, text: string): ApiError {
  const { code, detail, attr } = readRefusal(text)
  const retrySeconds = Number(headers.get('retry-after') ?? Number.NaN)
  return new ApiError(detail ?? `The server answered with status ${status}.`, {
    ...{ status, code: code ?? `status_${status}`, attr: attr ?? null },
    retryAtMs: Number.isFinite(retrySeconds) ? Date.now() + retrySeconds * 1_000 : undefined,
    details: `request ${headers.get('x-request-id') ?? 'without id'}, status ${status}, ${new Date().toISOString()}`,
  })
}

/** A proxy on the way answers in forms of its own. */
function readRefusal(text: string): { code?: string; detail?: string; attr?: string | null } {
  try {
    const { code, detail, attr } = JSON.parse(text) as Record<string, unknown>
    return {
      ...(typeof code === 'string' && { code }),
      ...(typeof detail === 'string' && { detail }),
      ...(typeof attr === 'string' && { attr }),
    }
  } catch {
    return {}
  }
}
