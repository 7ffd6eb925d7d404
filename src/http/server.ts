// The HTTP server: raw bodies, one route table, CORS, and JSON answers for every error. `compose/front/servers.ts`
// passes it the routes.

import { randomUUID } from 'node:crypto'
import { createServer, type RequestListener, type Server } from 'node:http'
import Fastify, { errorCodes, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import {
  createMethodNotAllowedError,
  internalError,
  notFound,
  unknownPublicPath,
  type WireError,
  wireError,
} from '#wire/wire-error.ts'
import { type BodyFault, emptyBody } from './bodies/body-reader.ts'
import { BodyBudget } from './bodies/request-bodies.ts'
import {
  answerStalledRequest,
  answerUnreadableRequest,
  forgetUnreadRequest,
  rememberUnreadRequest,
} from './bodies/unread-requests.ts'
import { hideUnreadableContentType, restoreContentType } from './bodies/unreadable-content-type.ts'
import type { Connections } from './connections.ts'
import { buildCorsHeaders, corsMethods, corsOfUnknown, isSentByPage } from './shared/cors.ts'
import {
  collectKnownPaths,
  doesAnswerHead,
  doesRegisterAllMethods,
  findKnownPath,
  type KnownPath,
  listPathSpellings,
  usualMethods,
} from './shared/known-paths.ts'
import { createRequestIdMaker, requestIdHeader } from './shared/request-id.ts'
import { type Route, type RouteGroup, sendError, sendRouteError } from './shared/route.ts'
import { hasSeveralHosts } from './shared/several-hosts.ts'

export interface HttpServerOptions {
  readonly routes: readonly Route[]
  readonly logger: Logger
  readonly metrics: Metrics
  /** Runs before the handlers of `personal_key` and `operator` routes. To refuse, it answers and returns false. */
  readonly authorize: (route: Route, request: FastifyRequest, reply: FastifyReply) => Promise<boolean>
  /**
   * Limits the bytes of all bodies together, each until its request is answered; when absent, the server creates a budget.
   */
  readonly bodyBudget?: BodyBudget
  /** Limits the connections; no limit when absent. */
  readonly connections?: Connections
  /** Returns 0 ≤ x < 1; spreads the retries of refused clients over time. */
  readonly random?: () => number
  /** Creates ids (UUIDs of version 4) for requests without an id. */
  readonly newUuid?: () => string
}

/** Stand for a refused body, so that its route can still answer with the route's own error. */
const refusedBodies = { busy: Symbol('busy'), too_large: Symbol('too large') } as const
const genericBusy = wireError(503, 'transient_error', 'transient error, please retry')
/** Source: docs/wire/ingestion.md 1.3. */
const busySecondsMax = 30
const malformedUrl = wireError(400, 'invalid_url', 'The URL is malformed: check its percent-encoding.')
const severalHosts = wireError(400, 'invalid_request', 'The request has several Host headers.')
const genericTooLarge = wireError(413, 'payload_too_large', 'The request body is too large.')

/** No route has a schema to compile, yet without these factories Fastify would load Ajv and its serializers. */
const noSchemas = { buildValidator: failOnSchema, buildSerializer: failOnSchema }

function failOnSchema(): never {
  throw new Error('routes must not have a schema for Fastify to compile')
}

/**
 * The limits keep slow clients from holding resources that others need. Idle connections stay open longer than the
 * keep-alive of common proxies.
 */
const connectionTimeouts = { headersMs: 10_000, requestMs: 60_000, keepAliveMs: 75_000, checkedEveryMs: 2_000 }

export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const { logger, metrics, bodyBudget = new BodyBudget(), random = Math.random, newUuid = randomUUID } = options
  const nothingHere = options.routes.some(({ group }) => group === 'management') ? notFound : unknownPublicPath
  const server = Fastify({
    logger: false,
    schemaController: { compilersFactory: noSchemas },
    routerOptions: {
      // Flag keys have up to 400 characters, and percent-encoding may turn each into three.
      maxParamLength: 1_250,
      ignoreTrailingSlash: false,
      // An SDK whose configured host ends in a slash requests `//static/array.js` and `//decide/`. Source:
      // docs/wire/clients.md 13, row 73.
      ignoreDuplicateSlashes: true,
      caseSensitive: true,
    },
    // Called for a URL that cannot be parsed and therefore has no route.
    frameworkErrors: (error, request, reply) => {
      setRequestIdHeader(request, reply as unknown as FastifyReply)
      const answer = error.code === 'FST_ERR_BAD_URL' ? malformedUrl : nothingHere
      sendError(reply as unknown as FastifyReply, answer)
    },
    clientErrorHandler: (error, socket) => {
      if (options.connections?.isWithinAnswer(socket) === true) socket.destroy()
      else answerUnreadableRequest(error, socket)
    },
    genReqId: createRequestIdMaker(newUuid),
    // PostHog's clients escape the `@` of `users/@me` and of every `@current`.
    rewriteUrl: ({ url = '/' }) =>
      url.includes('/%40') ? url.replace(/\/%40(?=(?:me|current)(?:[/?]|$))/g, '/@') : url,
    serverFactory: answer => createNodeServer(answer as RequestListener, options.connections),
    forceCloseConnections: 'idle',
    exposeHeadRoutes: false,
    // While the server closes, a request that still arrives on an open connection is served as the connection's last.
    return503OnClosing: false,
  })
  server.addHook('onRequest', (request, reply, done) => {
    setRequestIdHeader(request, reply)
    if (!hasSeveralHosts(request.raw)) return done()
    releaseBody(request, reply)
    sendRouteError((request.routeOptions.config as { route?: Route }).route, request, reply, severalHosts)
  })
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', ({ raw, routeOptions }, _payload, done) => {
    bodyBudget.read(raw, routeOptions.bodyLimit, (fault, body) => {
      if (fault === null) done(null, body)
      else if (fault === 'stalled') answerStalledRequest(raw)
      else if (fault === 'broken') done(createBrokenBodyError())
      else done(null, refusedBodies[fault])
    })
  })
  // Without this, Fastify itself would answer a QUERY request that has no content type, whatever its path.
  server.addHttpMethod('QUERY', { hasBody: false, overrideExisting: true })

  for (const route of options.routes) for (const path of listPathSpellings(route.path)) registerRoute(path, route)
  const knownPaths = collectKnownPaths(options.routes)
  for (const known of knownPaths) if (doesRegisterAllMethods(known, knownPaths)) registerOtherMethods(known)

  server.setNotFoundHandler((request, reply) => {
    releaseBody(request, reply)
    const known = findKnownPath(knownPaths, request)
    if (known === undefined) {
      if (isSentByPage(corsOfUnknown, request)) allowOrigin(request, reply, corsOfUnknown)
      return sendError(reply, nothingHere)
    }
    refuseMethod(known, request, reply)
  })
  server.setErrorHandler((error: Error & { code?: string; statusCode?: number }, request, reply) => {
    const route = request.routeOptions.config as { route?: Route }
    answerError(error, route.route, request, reply)
  })
  return server

  function registerRoute(path: string, route: Route): void {
    const guarded = route.access === 'personal_key' || route.access === 'operator'
    const cors = corsMethods[route.group]
    const isPrivate = ['management', 'live', 'exports'].includes(route.group)
    const countAnswer = createAnswerCounter(metrics, route.group)
    server.route({
      method: route.method,
      url: path,
      bodyLimit: route.bodyLimitBytes,
      exposeHeadRoute: doesAnswerHead(route),
      config: { route },
      onRequest: createOnRequestHook(route, cors, bodyBudget),
      handler: (request, reply) => {
        restoreContentType(request)
        if (isPrivate) reply.header('cache-control', 'private, no-store')
        if (isSentByPage(cors, request)) allowOrigin(request, reply, cors)
        // Fastify does not read the body of a GET request, so it is read here.
        const handle = route.method === 'GET' && hasBody(request) ? readThenHandle : handleRequest
        return handle(route, guarded, request, reply) as unknown as undefined
      },
      onResponse: (request, reply, done) => {
        releaseRequest(request, reply)
        countAnswer(reply.statusCode, reply.elapsedTime / 1000)
        if (logger.isLevelEnabled('debug')) {
          const { id: requestId, method } = request
          logger.debug({ requestId, method, path, status: reply.statusCode, ms: reply.elapsedTime }, 'answered')
        }
        done()
      },
    })
  }

  function releaseRequest(request: FastifyRequest, reply: FastifyReply): void {
    forgetUnreadRequest(request)
    options.connections?.release(request.raw, reply.raw)
  }

  function handleRequest(
    route: Route,
    guarded: boolean,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void | Promise<void> {
    if (!Buffer.isBuffer(request.body)) {
      if (typeof request.body === 'symbol') return refuseBody(route, request, reply)
      // With no content-length and no content-type Fastify leaves the body undefined.
      request.body = emptyBody
    }
    // Read the length now: a decode thread may take over the body's memory.
    const { length } = request.body as Buffer
    let work: Promise<void> | null = null
    try {
      const handled = guarded ? authorizeThenHandle(route, request, reply) : route.handler(request, reply)
      if (handled instanceof Promise) work = handled
      return handled
    } finally {
      bodyBudget.giveBack(length, reply.raw, work)
    }
  }

  /** Releases the body of a request that is answered without it. */
  function releaseBody(request: FastifyRequest, reply: FastifyReply): void {
    if (Buffer.isBuffer(request.body)) bodyBudget.giveBack(request.body.length, reply.raw, null)
    else if (hasBody(request)) bodyBudget.drain(request.raw, reply.raw)
  }

  async function readThenHandle(...[route, guarded, request, reply]: Parameters<typeof handleRequest>): Promise<void> {
    if (route.takesBodyOfGet !== true) {
      bodyBudget.drain(request.raw, reply.raw)
      return handleRequest(route, guarded, request, reply)
    }
    const { fault, body } = await new Promise<{ fault: BodyFault | null; body: Buffer }>(resolve => {
      bodyBudget.read(request.raw, route.bodyLimitBytes, (fault, body) => resolve({ fault, body }))
    })
    if (fault === 'stalled') return answerStalledRequest(request.raw)
    if (fault === 'broken') {
      reply.header('connection', 'close')
      return answerError(createBrokenBodyError(), route, request, reply)
    }
    request.body = fault === null ? body : refusedBodies[fault]
    await handleRequest(route, guarded, request, reply)
  }

  /** Answers a request whose body was refused. Drains the rest of the body, so that the client sees the answer. */
  function refuseBody(route: Route, request: FastifyRequest, reply: FastifyReply): void {
    bodyBudget.drain(request.raw, reply.raw)
    if (request.body === refusedBodies.too_large) {
      answerError(createTooLargeError(), route, request, reply)
      return
    }
    const spread = route.group === 'capture' ? Math.floor(random() * busySecondsMax) : 0
    reply.header('retry-after', String(route.retryAfterSeconds ?? 1 + spread))
    sendRouteError(route, request, reply, route.busy ?? genericBusy)
  }

  async function authorizeThenHandle(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (await options.authorize(route, request, reply)) await route.handler(request, reply)
  }

  /** Answers 405 to methods that a known path does not offer, and 200 to every preflight request of a browser. */
  function registerOtherMethods(known: KnownPath): void {
    const { path, methods, group, echoes } = known
    const echoing = echoes === undefined ? {} : { echoes }
    const cors = corsMethods[group]
    const others = usualMethods.filter(method => !methods.has(method))
    server.route({
      method: others as ['GET'],
      url: path,
      onRequest: (request, _reply, done) => {
        rememberUnreadRequest(echoing, cors, request)
        done()
      },
      handler: (request, reply) => {
        releaseBody(request, reply)
        if (request.method !== 'OPTIONS' || cors === null)
          return refuseMethod(known, request, reply) as unknown as undefined
        if (isSentByPage(cors, request)) allowOrigin(request, reply, cors)
        if (echoes !== undefined) echoHeaders(echoes, request, reply)
        return reply.code(200).send()
      },
      onResponse: (request, reply, done) => {
        releaseRequest(request, reply)
        done()
      },
    })
  }

  function refuseMethod({ group, echoes, methods }: KnownPath, request: FastifyRequest, reply: FastifyReply): void {
    const cors = corsMethods[group]
    if (isSentByPage(cors, request)) allowOrigin(request, reply, cors)
    if (echoes !== undefined) echoHeaders(echoes, request, reply)
    reply.header('allow', [...methods].join(', '))
    sendError(reply, createMethodNotAllowedError(request.method, [...methods]))
  }

  function answerError(
    error: Error & { code?: string; statusCode?: number },
    route: Route | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    const answer = toWireError(error, route)
    if (answer.status === 413) route?.refused?.(request, answer)
    if (answer.status >= 500) {
      const { id: requestId, method } = request
      logger.error({ err: error, requestId, method, path: route?.path }, 'request failed')
    }
    const cors = route === undefined ? null : corsMethods[route.group]
    if (isSentByPage(cors, request)) allowOrigin(request, reply, cors)
    const retryAfter = answer.status >= 500 ? route?.retryAfterSeconds : undefined
    if (retryAfter !== undefined) reply.header('retry-after', String(retryAfter))
    sendRouteError(route, request, reply, answer)
  }
}

function createNodeServer(answer: RequestListener, connections: Connections | undefined): Server {
  const { headersMs, requestMs, keepAliveMs, checkedEveryMs } = connectionTimeouts
  const timeouts = {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    // With Node's default of 30 s, headers that never end could take four times their limit.
    connectionsCheckingInterval: checkedEveryMs,
  }
  if (connections === undefined) return createServer(timeouts, answer)
  const server = createServer({ ...timeouts, ...connections.serverOptions }, connections.noting(answer))
  connections.watch(server)
  return server
}

function setRequestIdHeader({ id }: Pick<FastifyRequest, 'id'>, reply: FastifyReply): void {
  reply.header(requestIdHeader, id)
}

/** A request that takes longer has a slow client; a whole shutdown may take 10 s. */
const lastRequestsMs = 3_000

/** Stops accepting and waits for open requests; destroys connections whose request takes longer than `lastRequestsMs`. */
export async function closeServer(server: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => server.server.closeAllConnections(), lastRequestsMs)
  try {
    await server.close()
  } finally {
    clearTimeout(cut)
  }
}

type OnRequest = (request: FastifyRequest, reply: FastifyReply, done: () => void) => void

/** The hook that runs before a request's body is read. */
function createOnRequestHook(route: Route, cors: string | null, bodyBudget: BodyBudget): OnRequest {
  const { stalled, echoes, beforeBody: judge } = route
  if (stalled === undefined && echoes === undefined && judge === undefined && cors === null)
    return hideUnreadableContentType
  return (request, reply, done) => {
    rememberUnreadRequest(route, cors, request)
    if (echoes !== undefined) echoHeaders(echoes, request, reply)
    if (judge !== undefined) {
      if (isSentByPage(cors, request)) allowOrigin(request, reply, cors)
      if (!judge(request, reply)) return bodyBudget.drain(request.raw, reply.raw)
    }
    hideUnreadableContentType(request, reply, done)
  }
}

function hasBody({ headers }: FastifyRequest): boolean {
  return (headers['content-length'] ?? '0') !== '0' || headers['transfer-encoding'] !== undefined
}

function createTooLargeError(): Error {
  return new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE()
}

function createBrokenBodyError(): Error {
  return Object.assign(new Error('The request did not arrive.'), { statusCode: 400 })
}

function echoHeaders(names: readonly string[], request: FastifyRequest, reply: FastifyReply): void {
  for (const name of names) if (request.headers[name] !== undefined) reply.header(name, request.headers[name])
}

/** Resolves labels once per route and status: looking them up costs more than counting. */
function createAnswerCounter(metrics: Metrics, group: RouteGroup): (status: number, seconds: number) => void {
  const durations = metrics.requestSeconds.labels({ route: group })
  const counts = new Map<number, { inc(): void }>()
  return (status, seconds) => {
    let count = counts.get(status)
    if (count === undefined) {
      count = metrics.requests.labels({ route: group, status })
      counts.set(status, count)
    }
    count.inc()
    durations.observe(seconds)
  }
}

function toWireError(error: Error & { code?: string; statusCode?: number }, route: Route | undefined): WireError {
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return route?.tooLarge ?? genericTooLarge
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return wireError(error.statusCode, 'invalid_request', error.message)
  }
  return internalError
}

function allowOrigin(request: FastifyRequest, reply: FastifyReply, cors: string): void {
  reply.headers(buildCorsHeaders(request, cors))
}
