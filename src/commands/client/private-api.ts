// The commands' client of the private API: uses `fetch`, a personal key and one project. Errors are one line with a remedy.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, parseJson } from '#core/json.ts'
import { startCommand } from '#distribution.ts'
import { isUnknownPathDetail } from '#wire/wire-error.ts'
import { describeMissingAnswer } from './describe-missing-answer.ts'

export interface PrivateApiOptions {
  /** Address of the instance without a final slash. */
  readonly instance: string
  readonly personalKey: string
  /** An id, or `@current` for the first project of the key. */
  readonly project: string
  readonly timeoutMs?: number
  /** Aborts requests, which then throw the signal's reason. */
  readonly signal?: AbortSignal
}

export type UrlQuery = Readonly<Record<string, string | number | readonly string[] | undefined>>

/** Why a command cannot continue. `exitCode` 2: repeating it changes nothing; 1: it failed during its work. */
export class ClientError extends Error {
  readonly exitCode: 1 | 2 = 2
  /** The status of the response; null if there was none. */
  readonly status: number | null = null
  /** The field or parameter that the response refuses; null if it names none. */
  readonly attr: string | null = null
  /** The problem with that field, without the field's name and the instance's address. */
  readonly detail: string | null = null

  constructor(message: string, options: Partial<Pick<ClientError, 'exitCode' | 'status' | 'attr' | 'detail'>> = {}) {
    super(message)
    this.name = 'ClientError'
    Object.assign(this, options)
  }
}

const timeoutMsDefault = 60_000
/** The row limit of the first page. Fewer rows are requested after a page was refused for exceeding 8 MiB. */
const pageRowsMax = 200

export class PrivateApi {
  readonly instance: string
  readonly project: string
  readonly #personalKey: string
  readonly #timeoutMs: number
  readonly #stop: AbortSignal | undefined

  constructor({ instance, personalKey, project, timeoutMs = timeoutMsDefault, signal }: PrivateApiOptions) {
    this.instance = instance
    this.project = project
    this.#personalKey = personalKey
    this.#timeoutMs = timeoutMs
    this.#stop = signal
  }

  /** @param path below the project, such as `/feature_flags/`. @throws ClientError */
  async get(path: string, query: UrlQuery = {}): Promise<JsonObject> {
    return this.#object(await this.#send(path, query, { method: 'GET', signal: this.#limited() }))
  }

  /** Requests a list that the API returns without pages. @throws ClientError */
  async bareList(path: string): Promise<JsonObject[]> {
    const response = await this.#send(path, {}, { method: 'GET', signal: this.#limited() })
    const value = parseAnswer(await this.#text(response))
    if (!Array.isArray(value)) throw this.#unexpected(response.status)
    return value.filter(isJsonObject)
  }

  /** @throws ClientError */
  post(path: string, body: JsonObject, query: UrlQuery = {}): Promise<JsonObject> {
    return this.#write('POST', path, body, query)
  }

  /** @throws ClientError */
  patch(path: string, body: JsonObject, query: UrlQuery = {}): Promise<JsonObject> {
    return this.#write('PATCH', path, body, query)
  }

  async #write(method: string, path: string, body: JsonObject, query: UrlQuery): Promise<JsonObject> {
    return this.#object(await this.#send(path, query, { ...buildJsonRequest(method, body), signal: this.#limited() }))
  }

  /**
   * Posts without a time limit, since the response may take long. @returns the response's last JSON line. @throws
   * ClientError
   */
  async postForLastLine(path: string, body: JsonObject, query: UrlQuery = {}): Promise<JsonObject> {
    const init = { ...buildJsonRequest('POST', body), ...(this.#stop && { signal: this.#stop }) }
    const response = await this.#send(path, query, init)
    const last = parseAnswer((await this.#text(response)).trimEnd().split('\n').at(-1)!)
    if (!isJsonObject(last)) throw this.#unexpected(response.status)
    return last
  }

  /** The personal key itself, with its scopes. @throws ClientError */
  async ownKey(): Promise<JsonObject> {
    const init = { method: 'GET', signal: this.#limited() }
    return this.#object(await this.#ask(`${this.instance}/api/personal_api_keys/@current/`, init))
  }

  /** Begins a download, without a time limit. @returns the response with an unread body. @throws ClientError */
  open(path: string, query: UrlQuery = {}, signal?: AbortSignal): Promise<Response> {
    return this.#send(path, query, { method: 'GET', ...(signal === undefined ? {} : { signal }) })
  }

  /** All results of a list in pages, up to `countMax`. @throws ClientError */
  async list(path: string, query: UrlQuery = {}, countMax = Number.POSITIVE_INFINITY): Promise<JsonObject[]> {
    const results: JsonObject[] = []
    let limit = pageRowsMax
    for (;;) {
      let page: JsonObject
      try {
        page = await this.get(path, { limit, ...query, offset: results.length })
      } catch (error) {
        if (!isTooLarge(error) || limit === 1) throw error
        limit = Math.floor(limit / 2)
        continue
      }
      const found = Array.isArray(page.results) ? page.results.filter(isJsonObject) : []
      results.push(...found)
      if (results.length >= countMax) return results.slice(0, countMax)
      if (page.next === null || page.next === undefined || found.length === 0) return results
    }
  }

  #limited(): AbortSignal {
    const limit = AbortSignal.timeout(this.#timeoutMs)
    return this.#stop === undefined ? limit : AbortSignal.any([this.#stop, limit])
  }

  #send(path: string, query: UrlQuery, init: RequestInit): Promise<Response> {
    const project = encodeURIComponent(this.project)
    return this.#ask(`${this.instance}/api/projects/${project}${path}${formatQuery(query)}`, init)
  }

  async #ask(url: string, init: RequestInit): Promise<Response> {
    const headers = { ...init.headers, authorization: `Bearer ${this.#personalKey}`, accept: 'application/json' }
    let response: Response
    try {
      response = await fetch(url, { ...init, headers, redirect: 'manual' })
    } catch (cause) {
      throw this.#unreachable(cause)
    }
    if (response.ok) return response
    throw await this.#refusal(response)
  }

  async #object(response: Response): Promise<JsonObject> {
    const value = parseAnswer(await this.#text(response))
    if (!isJsonObject(value)) throw this.#unexpected(response.status)
    return value
  }

  async #text(response: Response): Promise<string> {
    try {
      return await response.text()
    } catch (cause) {
      throw this.#unreachable(cause)
    }
  }

  #unreachable(cause: unknown): ClientError {
    this.#stop?.throwIfAborted()
    if (cause instanceof Error && cause.name === 'TimeoutError')
      return new ClientError(`${this.instance} did not answer within ${this.#timeoutMs / 1_000} s. Try again.`, {
        exitCode: 1,
      })
    return new ClientError(
      `No instance answers at ${this.instance} (${describeMissingAnswer(cause)}). Start one with ${startCommand}, or set its URL with --host.`,
    )
  }

  async #refusal(response: Response): Promise<ClientError> {
    const { status } = response
    const body = parseAnswer(await this.#text(response))
    const readField = (name: string): string | null => {
      const sent = isJsonObject(body) ? getOwnValue(body, name) : null
      return typeof sent === 'string' ? sent : null
    }
    const [detail, attr] = [readField('detail'), readField('attr')]
    if (detail === null) return this.#unexpected(status)
    switch (status) {
      case 401:
        return new ClientError(
          `${this.instance} rejected the key in PENNON_PERSONAL_KEY: ${detail} ` +
            'To create another key, run pennon new-key where the instance runs.',
          { status },
        )
      case 403:
        return new ClientError(`The key in PENNON_PERSONAL_KEY lacks permission at ${this.instance}: ${detail}`, {
          status,
        })
      case 404:
        return new ClientError(this.#notFound(detail), { status })
      default:
        return new ClientError(`${this.instance} answered ${status}: ${attr === null ? '' : `${attr}: `}${detail}`, {
          ...{ status, attr, detail },
          exitCode: status >= 500 ? 1 : 2,
        })
    }
  }

  /** The private API has all paths that commands use, so an unknown path means that the address is wrong. */
  #notFound(detail: string): string {
    if (isUnknownPathDetail(detail))
      return `There is no private API at ${this.instance}, which answered: ${detail} Set --host or PENNON to the part of its URL before /api/, such as http://127.0.0.1:8000; with PENNON_ADMIN_PORT, the private API is on that port.`
    return this.project === ''
      ? `${detail} (at ${this.instance})`
      : `${detail} (in project ${this.project} at ${this.instance}; see --project)`
  }

  #unexpected(status: number): ClientError {
    return new ClientError(
      `${this.instance} answered ${status}, but not like Pennon's private API. ` +
        'Check the URL in --host or PENNON; with PENNON_ADMIN_PORT, the private API is on that port.',
      { status },
    )
  }
}

function buildJsonRequest(method: string, body: JsonObject) {
  return { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

/** Whether a page was refused for its size. */
function isTooLarge(error: unknown): boolean {
  return error instanceof ClientError && error.status === 400 && error.attr === 'limit'
}

function parseAnswer(text: string): JsonValue | undefined {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

function formatQuery(query: UrlQuery): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const each of [value].flat()) params.append(name, String(each))
  }
  return params.size === 0 ? '' : `?${params}`
}
