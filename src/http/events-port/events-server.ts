// The read-only port for dashboards and notebooks: enough of ClickHouse's HTTP interface for its clients. Each project has
// a user name; all share one password. SQL is checked and run like in `POST …/query/` (docs/decisions/0052). Only the SQL,
// its parameters and the requested format reach the engine.

import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { err, ok, type Result } from '#core/result.ts'
import { sqlLengthMax } from '#core/sql/check-sql.ts'
import { stripClientAdditions } from '#core/sql/client-additions.ts'
import { addPropertyHint } from '#core/sql/property-hint.ts'
import type { SqlFailure, SqlQueries } from '#ports/events/sql-queries.ts'
import { MirrorFillingError, PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import { exemptFromStallLimit } from '../answers/answer-budget.ts'
import type { Connections } from '../connections.ts'
import { hasSeveralHosts } from '../shared/several-hosts.ts'

export interface EventsServerOptions {
  readonly events: Pick<SqlQueries, 'forwardSql'>
  readonly password: string
  /** Whether this front serves the project. */
  readonly hasProject: (projectId: number) => boolean
  readonly connections: Connections
  readonly logger: Logger
  readonly timeouts?: Partial<typeof defaultTimeouts>
}

/** A download may take long but not stall, because other queries of the project wait for it. */
const defaultTimeouts = { headersMs: 10_000, requestMs: 30_000, stalledMs: 30_000, downloadMs: 120_000 }

/** An error with ClickHouse's own code and name, which its clients expect. */
interface EngineError {
  readonly status: number
  readonly code: number
  readonly name: string
  readonly text: string
}

const projectUser = /^project_([1-9][0-9]{0,9})$/

export function createEventsServer(options: EventsServerOptions): Server {
  const { events, hasProject, connections, logger } = options
  const timeouts = { ...defaultTimeouts, ...options.timeouts }
  const passwordDigest = hashText(options.password)

  const server = createServer(
    {
      ...connections.serverOptions,
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: 30_000,
      connectionsCheckingInterval: 2_000,
    },
    connections.noting((request, response) => {
      void answer(request, response).catch(error => {
        logger.error({ err: error }, 'request to the events port failed')
        if (response.headersSent) response.destroy()
        else sendError(response, { status: 500, code: 1002, name: 'UNKNOWN_EXCEPTION', text: 'Internal error.' })
      })
    }),
  )
  connections.watch(server)
  return server

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (hasSeveralHosts(request)) return refuseRequest(request, response, severalHosts)
    // Prefixes the path with a host. Resolving it against a base URL would take the text after `//` for a host.
    const url = request.url?.startsWith('/') ? URL.parse(`http://x${request.url}`) : null
    if (url === null) return refuseRequest(request, response, notFound)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (isRead && (url.pathname === '/ping' || (url.pathname === '/' && url.search === ''))) {
      response.writeHead(200, { 'Content-Type': 'text/plain; charset=UTF-8' }).end('Ok.\n')
      return
    }
    if (url.pathname !== '/') return refuseRequest(request, response, notFound)
    if (request.method !== 'GET' && request.method !== 'POST') return refuseRequest(request, response, notAllowed)
    const projectId = authenticateProject(request, url)
    if (projectId === null) return refuseRequest(request, response, unauthenticated)
    const body = request.method === 'POST' ? await readQueryBody(request) : ok('')
    if (!body.ok) return refuseRequest(request, response, createSyntaxError(body.error))
    const sql = [url.searchParams.get('query') ?? '', body.value].filter(part => part !== '').join('\n')
    await forwardQuery(projectId, sql, url, request, response)
  }

  async function forwardQuery(
    projectId: number,
    sql: string,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const ended = new AbortController()
    response.once('close', () => ended.abort(new Error('the client disconnected')))
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(timeouts.downloadMs)])
    try {
      const params = selectEngineParams(url, request)
      const passed = await events.forwardSql(
        { projectId, sql, params, acceptEncoding: chooseAcceptedEncoding(request) },
        signal,
      )
      if (!passed.ok) return sendError(response, toEngineError(passed.error, sql))
      exemptFromStallLimit(response)
      response.setTimeout(timeouts.stalledMs, () => response.destroy())
      response.writeHead(200, passed.value.headers)
      // If the engine's answer breaks off, the connection is destroyed before this answer ends, so that clients notice.
      await pipeline(passed.value.body, response)
    } catch (error) {
      if (response.headersSent || response.destroyed) response.destroy()
      else if (signal.aborted) sendError(response, tooSlow)
      else if (error instanceof PortError) sendError(response, storeErrorToEngineError(error))
      else throw error
    }
  }

  /** The project that the user name belongs to; null if there is none or the password is wrong. */
  function authenticateProject(request: IncomingMessage, url: URL): number | null {
    const { user, password } = readCredentials(request, url)
    const isRight = timingSafeEqual(hashText(password), passwordDigest)
    const projectId = Number(projectUser.exec(user)?.[1] ?? 0)
    return isRight && projectId > 0 && hasProject(projectId) ? projectId : null
  }
}

/** A character of SQL may take up to four bytes. */
const bytesMax = 4 * sqlLengthMax

const decoders: Readonly<Record<string, (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>>> = {
  gzip: promisify(gunzip),
  deflate: promisify(inflate),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
}

/**
 * Reads SQL from a body, compressed or not, up to the maximum length of a query.
 * @returns err with the reason when the body cannot be read; the rest of the body is then left unread.
 */
async function readQueryBody(request: IncomingMessage): Promise<Result<string, string>> {
  if (/^multipart\//i.test(request.headers['content-type'] ?? ''))
    return err('Send the query as the request body, and its parameters as param_… in the URL.')
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > bytesMax) return err(`The query exceeds ${sqlLengthMax} characters.`)
      chunks.push(chunk)
    }
  } catch {
    return err('The request body ended early.')
  }
  const body = Buffer.concat(chunks)
  const encoding = String(request.headers['content-encoding'] ?? 'identity').toLowerCase()
  if (encoding === 'identity') return ok(body.toString())
  const decode = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (decode === undefined) return err(`Unsupported Content-Encoding ${encoding.slice(0, 40)}. Use gzip.`)
  try {
    return ok((await decode(body, { maxOutputLength: bytesMax })).toString())
  } catch {
    return err(`The body is not valid ${encoding}, or the decompressed query is too long.`)
  }
}

/** Reads credentials in ClickHouse's three forms: `Authorization`, ClickHouse's own headers, or parameters. */
function readCredentials({ headers }: IncomingMessage, { searchParams }: URL): { user: string; password: string } {
  const basic = /^basic ([A-Za-z0-9+/=]{1,1000})$/i.exec(headers.authorization ?? '')
  if (basic !== null) {
    const text = Buffer.from(basic[1]!, 'base64').toString()
    const colon = text.indexOf(':')
    return { user: text.slice(0, Math.max(colon, 0)), password: text.slice(colon + 1) }
  }
  const user = headers['x-clickhouse-user'] ?? searchParams.get('user')
  const password = headers['x-clickhouse-key'] ?? searchParams.get('password')
  return { user: String(user ?? ''), password: String(password ?? '') }
}

/** Digests are compared instead of the texts, so that the time taken reveals neither the password nor its length. */
function hashText(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/**
 * Parameters of ClickHouse's interface that choose the format of the answer. All other parameters are dropped, except
 * the query's own.
 */
const formatParams: Readonly<Record<string, RegExp>> = {
  default_format: /^[A-Za-z0-9]{1,64}$/,
  compress: /^[01]$/,
  // Drivers that read the number of rows from a response header send this, so that the header has the final number.
  wait_end_of_query: /^[01]$/,
  client_protocol_version: /^[0-9]{1,9}$/,
}
const queryParam = /^param_[A-Za-z_][A-Za-z0-9_]{0,99}$/

/** A format in the SQL takes precedence over the format header, and the header over `default_format`. */
function selectEngineParams({ searchParams }: URL, { headers }: IncomingMessage): [string, string][] {
  const format = headers['x-clickhouse-format']
  const asked: [string, string][] = [...searchParams]
  if (typeof format === 'string') asked.push(['default_format', format])
  return asked.filter(([name, value]) => formatParams[name]?.test(value) === true || queryParam.test(name))
}

function chooseAcceptedEncoding({ headers }: IncomingMessage): string | null {
  return /\bgzip\b/.test(String(headers['accept-encoding'] ?? '')) ? 'gzip' : null
}

const unauthenticated: EngineError = {
  status: 401,
  code: 516,
  name: 'AUTHENTICATION_FAILED',
  text: 'Authentication failed: the user name is project_1 for project 1, the password is PENNON_EVENTS_PASSWORD.',
}
const notFound: EngineError = {
  status: 404,
  code: 279,
  name: 'NOT_FOUND',
  text: 'Unknown path: send queries to /. /ping returns Ok.',
}
const severalHosts: EngineError = {
  status: 400,
  code: 36,
  name: 'BAD_ARGUMENTS',
  text: 'The request has several Host headers.',
}
const notAllowed: EngineError = { status: 405, code: 48, name: 'NOT_IMPLEMENTED', text: 'Use GET or POST.' }
const tooSlow: EngineError = { status: 503, code: 159, name: 'TIMEOUT_EXCEEDED', text: 'The query took too long.' }

function createSyntaxError(text: string): EngineError {
  return { status: 400, code: 62, name: 'SYNTAX_ERROR', text }
}

function toEngineError(failure: SqlFailure, sql: string): EngineError {
  switch (failure.kind) {
    case 'refused':
      return createSyntaxError(addPropertyHint(failure, stripClientAdditions(sql)))
    case 'failed':
      return { status: 400, code: 36, name: 'BAD_ARGUMENTS', text: addPropertyHint(failure, sql) }
    case 'too_large':
      return { status: 400, code: 241, name: 'MEMORY_LIMIT_EXCEEDED', text: failure.detail }
    case 'forbidden':
      return {
        status: 403,
        code: 497,
        name: 'ACCESS_DENIED',
        text: 'Not allowed: queries may only read the tables events, persons, groups and flag_calls.',
      }
    case 'not_set_up':
      return { status: 503, code: 497, name: 'ACCESS_DENIED', text: failure.detail }
  }
}

function storeErrorToEngineError(error: PortError): EngineError {
  if (error instanceof MirrorFillingError)
    return {
      status: 503,
      code: 395,
      name: 'PERSONS_FILLING',
      text: 'Persons and groups are still being copied into the event store. Try again later.',
    }
  if (error.code === 'timeout') return tooSlow
  if (error.code === 'full')
    return {
      status: 503,
      code: 202,
      name: 'TOO_MANY_SIMULTANEOUS_QUERIES',
      text: 'Too many queries of this project are queued. Try again.',
    }
  return { status: 503, code: 210, name: 'NETWORK_ERROR', text: 'The event store is unavailable. Try again.' }
}

/** Refuses a request whose body may not have been read completely. */
function refuseRequest(request: IncomingMessage, response: ServerResponse, error: EngineError): void {
  if (!request.complete && request.method !== 'GET') response.setHeader('Connection', 'close')
  sendError(response, error)
}

function sendError(response: ServerResponse, { status, code, name, text }: EngineError): void {
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=UTF-8',
    'X-ClickHouse-Exception-Code': String(code),
    ...(status === 401 && { 'WWW-Authenticate': 'Basic realm="Pennon events"' }),
    ...(status === 503 && { 'Retry-After': '1' }),
  })
  response.end(`Code: ${code}. DB::Exception: ${text} (${name})\n`)
}
