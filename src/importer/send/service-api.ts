// The importer's client of its target's private API: import jobs, the progress of the historical lane, stored events. Like
// sending, it waits while the service is unavailable. Source: docs/wire/import.md §2.8, §2.10, §2.11.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, parseJson } from '#core/json.ts'
import {
  computeRetryWaitMs,
  describeWait,
  type FetchClock,
  parseRetryAfter,
  sleepUntil,
} from '#importer/fetch/waiting.ts'
import { JobStopped, type Remedy } from '../job/job-paused.ts'
import { importKeyScopeList } from '../job/key-scopes.ts'
import type { StageProgress } from '../job/progress.ts'

export interface ServiceApiOptions {
  /** Address of the instance, without a slash at the end. */
  readonly address: string
  readonly personalKey: string
  /** An id, or `@current`. */
  readonly project: string
  readonly clock: FetchClock
  readonly progress: Pick<StageProgress, 'waiting'>
  readonly signal: AbortSignal
}

export type ServiceQuery = Readonly<Record<string, string>>

export interface CallOptions {
  readonly query?: ServiceQuery
  readonly body?: JsonObject
}

/** The service refuses a call for a reason that waiting cannot change. */
export class ServiceRefusal extends JobStopped {
  readonly status: number
  /** The service's error code; null if it gives none. */
  readonly code: string | null

  constructor(message: string, status: number, code: string | null, remedy: Remedy | null) {
    super(message, remedy)
    this.status = status
    this.code = code
  }
}

/** The longest wait for an answer: long, because the service may count millions of rows. */
const answerMsMax = 300_000

export class ServiceApi {
  readonly #options: ServiceApiOptions

  constructor(options: ServiceApiOptions) {
    this.#options = options
  }

  get address(): string {
    return this.#options.address
  }

  get clock(): FetchClock {
    return this.#options.clock
  }

  /** @throws the signal's reason when it is aborted. */
  pause(ms: number): Promise<void> {
    const { clock, signal } = this.#options
    const untilMs = clock.nowMs() + ms
    return sleepUntil(clock, () => untilMs, signal)
  }

  /** @param path below the project, such as `/import_jobs/`. @throws ServiceRefusal */
  async call(method: 'GET' | 'POST' | 'PATCH', path: string, options: CallOptions = {}): Promise<JsonObject> {
    const { clock, progress, signal } = this.#options
    for (let tries = 1; ; tries++) {
      const answer = await this.#once(method, path, options)
      if (answer.kind === 'done') {
        if (tries > 1) progress.waiting(null)
        return answer.body
      }
      const now = clock.nowMs()
      const untilMs = now + computeRetryWaitMs(tries, clock.random(), answer.retryAfterMs)
      progress.waiting(describeWait({ reason: answer.message, untilMs }, now))
      await sleepUntil(clock, () => untilMs, signal)
    }
  }

  async #once(method: string, path: string, options: CallOptions): Promise<Answer> {
    const { query = {}, body } = options
    const { address, personalKey, project, signal, clock } = this.#options
    const params = new URLSearchParams(query)
    const url = `${address}/api/projects/${encodeURIComponent(project)}${path}${params.size === 0 ? '' : `?${params}`}`
    let response: Response
    let text: string
    try {
      response = await fetch(url, {
        method,
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(answerMsMax)]),
        headers: { authorization: `Bearer ${personalKey}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      text = await response.text()
    } catch {
      signal.throwIfAborted()
      return { kind: 'trouble', message: `no connection to ${address}`, retryAfterMs: null }
    }
    const { status, ok, headers } = response
    if (ok) return { kind: 'done', body: parseObjectOrEmpty(text) }
    if (status === 408 || status === 429 || status >= 500) {
      const retryAfterMs = parseRetryAfter(headers.get('retry-after') ?? undefined, clock.nowMs())
      return { kind: 'trouble', message: `the service asks to wait (${status})`, retryAfterMs }
    }
    const refused = parseObjectOrEmpty(text)
    const code = getOwnValue(refused, 'code')
    throw new ServiceRefusal(
      describeRefusal(status, refused, this.#options, path),
      status,
      typeof code === 'string' ? code : null,
      status === 401 || status === 403 ? createKeyRemedy(project) : null,
    )
  }
}

type Answer =
  | { readonly kind: 'done'; readonly body: JsonObject }
  | { readonly kind: 'trouble'; readonly message: string; readonly retryAfterMs: number | null }

/** @param project an id, or `@current`. */
function createKeyRemedy(project: string): Remedy {
  return {
    command: null,
    why: `set PENNON_PERSONAL_KEY to a key with the scopes ${importKeyScopeList} of project ${project}, then pennon import run FOLDER`,
  }
}

function describeRefusal(
  status: number,
  body: JsonObject,
  { address, project }: ServiceApiOptions,
  path: string,
): string {
  const detail = getOwnValue(body, 'detail')
  const said = `${address} answers ${status} to ${path}${typeof detail === 'string' ? `: ${detail}` : ''}`
  if (status === 401 || status === 403)
    return `${said} The key in PENNON_PERSONAL_KEY needs the scopes ${importKeyScopeList} of project ${project}.`
  return said
}

/** @returns an empty object for text that is not a JSON object: not every service answers in JSON. */
export function parseObjectOrEmpty(text: string): JsonObject {
  try {
    const value = parseJson(text)
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** Awaits the answer of a call. @returns the answer, or the HTTP status if it is one of `statuses`. */
export async function awaitAnswerOrStatus(
  call: Promise<JsonObject>,
  statuses: readonly number[],
): Promise<JsonObject | number> {
  try {
    return await call
  } catch (error) {
    if (error instanceof ServiceRefusal && statuses.includes(error.status)) return error.status
    throw error
  }
}

export function readObjectList(object: JsonObject, key: string): readonly JsonObject[] {
  const value: JsonValue | undefined = getOwnValue(object, key)
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}
