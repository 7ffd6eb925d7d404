// One request as a client sends it, and its answer. For any server: a whole instance, or one feature in a test.

import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { assertAtMostOne, assertKnownFields, CannotRun, type Fields, isObject } from './compare.ts'

export interface Exchange {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly bytes: Buffer
}

/** Sends a request as given: only Host and Content-Length are added. */
export function exchange(url: string, { method, path, headers, body }: Exchange, agent?: Agent): Promise<Answer> {
  const own = Object.keys(headers ?? {}).find(name => name.toLowerCase() === 'content-length')
  if (own !== undefined) throw new CannotRun('Content-Length is the length of the body, and cannot be chosen')
  const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? Buffer.alloc(0))
  const hasBody = bytes.length > 0 || (method !== 'GET' && method !== 'HEAD')
  return new Promise((resolve, reject) => {
    let answered = false
    const request = httpRequest(
      new URL(url + path),
      {
        method,
        headers: { ...headers, ...(hasBody ? { 'content-length': bytes.length } : {}) },
        ...(agent && { agent }),
      },
      response => {
        answered = true
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const bytes = Buffer.concat(chunks)
          resolve({ status: response.statusCode!, headers: response.headers, text: bytes.toString(), bytes })
        })
        response.on('error', reject)
      },
    )
    // The connection of a refused body may be cut while the body is still being sent; an answer, if any, comes first.
    request.on('error', cause => {
      if (!answered) reject(cause)
    })
    request.end(bytes)
  })
}

/** A body as in a vector: text, bytes in base64, or the parts of a long text. */
export interface WrittenBody {
  readonly body?: string
  readonly body_base64?: string
  readonly body_generator?: {
    readonly prefix: string
    readonly repeat: string
    readonly count: number
    readonly suffix: string
  }
}

export const bodyFields = ['body', 'body_base64', 'body_generator']

export function bodyOf(request: WrittenBody & Fields): string | Uint8Array<ArrayBuffer> {
  const { body = '', body_base64, body_generator } = request
  assertAtMostOne(request, 'the request', bodyFields)
  if (body_base64 !== undefined) return Buffer.from(body_base64, 'base64')
  if (body_generator === undefined) return body
  assertKnownFields(body_generator, 'body_generator', ['prefix', 'repeat', 'count', 'suffix'])
  const { prefix, repeat, count, suffix } = body_generator
  return prefix + repeat.repeat(count) + suffix
}

/** `undefined` for a text that is not JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The text to compare with a vector's: the `detail` of a JSON error, else the body itself. */
export function comparableText({ status, text }: Pick<Answer, 'status' | 'text'>): string {
  const json = status >= 400 ? jsonOf(text) : undefined
  return isObject(json) && typeof json.detail === 'string' ? json.detail : text
}
