// Composes one feature of a front as in production, with parts given by a test, so that a fault in `src/compose/front`
// shows in every test that starts a feature this way.

import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance } from 'fastify'
import { createFrontContext, type FrontContext, type FrontSurroundings, type Machine } from '#compose/front/context.ts'
import type { FrontCounters } from '#compose/front/counters.ts'
import { createDecodePool, type DecodePoolOptions } from '#compose/front/decode-pool.ts'
import { composeChangeHub, type FrontDefinitions } from '#compose/front/definitions.ts'
import type { FrontParts } from '#compose/front/parts.ts'
import { composeAuthorizer, composeServers, type ServerParts } from '#compose/front/servers.ts'
import type { FrontStores } from '#compose/front/stores.ts'
import { readConfig } from '#config.ts'
import { quotaOf } from '#core/capture/quota-resource.ts'
import { err } from '#core/result.ts'
import { createHttpServer, type HttpServerOptions } from '#http/server.ts'
import type { Route } from '#http/shared/route.ts'
import type { LiveEvents } from '#services/live/live-events.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { fixedClock } from './fixed-clock.ts'
import { serve } from './local-server.ts'
import type { Scope } from './temp-dir.ts'

/** The part of a port that the feature under test uses. A call of any other method fails its request. */
export function only<Port extends object>(name: string, given: Partial<Port> = {}): Port {
  return new Proxy(given as Port, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key)
      if (typeof value === 'function') return value.bind(target)
      if (value !== undefined || typeof key === 'symbol' || key === 'then') return value
      return () => assert.fail(`this test has no ${name}, but its ${key} was called`)
    },
  })
}

export interface GivenContext extends Partial<Omit<FrontSurroundings, 'config'>>, Partial<Machine> {
  /** Override the defaults. */
  readonly settings?: Readonly<Record<string, string>>
}

/** A context that reads nothing from the environment and writes nothing. */
export function testContext({ settings = {}, ...given }: GivenContext = {}): FrontContext {
  const config = readConfig({ HOST: '127.0.0.1', PORT: '0', ...settings })
  assert.ok(config.ok, config.ok ? '' : config.error)
  const host: FrontSurroundings['host'] = {
    wakeUp: () => undefined,
    processingState: () => 'ok',
    isEventStoreUnavailable: () => false,
    otherMetrics: async () => [],
  }
  const [logger, metrics, clock] = [createSilentLogger(), createMetrics(), fixedClock('2026-01-15T12:00:00Z')]
  return createFrontContext({ config: config.value, clock, geoip: null, logger, metrics, host, ...given }, given)
}

type Some<Parts> = { readonly [Name in keyof Parts]?: Partial<Parts[Name]> }

export interface GivenParts {
  readonly stores?: Some<FrontStores>
  readonly counters?: Some<FrontCounters>
  readonly definitions?: Partial<FrontDefinitions>
  readonly eventLog?: Partial<FrontParts['eventLog']>
  readonly liveEvents?: Partial<FrontParts['liveEvents']>
  /** By default every day has the same salt. */
  readonly salts?: Partial<FrontParts['salts']>
  /** Real threads by default. */
  readonly decodeThreads?: FrontParts['decodeThreads']
}

/**
 * The parts of a front, closed with `opened`.
 * @param given the stores and counters that the feature uses. By default only quotas of 0 are exhausted, nothing is
 * counted, and there is at most one project.
 */
export function testParts(context: FrontContext, opened: AsyncDisposableStack, given: GivenParts = {}): FrontParts {
  const { stores = {}, counters = {}, definitions = {}, eventLog, liveEvents, salts, decodeThreads } = given
  const findProject = definitions.findProject ?? (() => null)
  return {
    ...context,
    eventLog: only('event log', eventLog),
    stores: {
      management: only('state', stores.management),
      state: only('state for evaluations', stores.state),
      eventStore: only('event store', stores.eventStore),
      logReader: only('reader of the log', stores.logReader),
      logSpace: null,
      payloadCipher: only('cipher', stores.payloadCipher),
    },
    counters: {
      flagRequests: only('count of flag requests', {
        count: () => undefined,
        isOverQuota: ({ quotas }) => quotas.featureFlagRequests === 0,
        ...counters.flagRequests,
      }),
      eventQuotas: only('quotas', {
        isOverQuota: ({ quotas }, resource) => quotaOf(quotas, resource) === 0,
        ...counters.eventQuotas,
      }),
      refused: only('count of refused events', { count: () => undefined, ...counters.refused }),
      keyUses: only('uses of keys', counters.keyUses),
      sessionUses: only('uses of sessions', counters.sessionUses),
      missingEvents: only('missing events', counters.missingEvents),
    },
    definitions: only('definitions', {
      projectCount: () => 1,
      changes: composeChangeHub(context),
      keyCheck: only('keys'),
      sessionCheck: only('sessions'),
      ...definitions,
      findProject,
    }),
    liveEvents: only('live view', { enter: async () => err('closed'), close: async () => undefined, ...liveEvents }),
    sessionCookie: 'pennon_session_testtest',
    salts: only('salts', { knownSalt: () => null, saltOf: () => Buffer.alloc(16, 7), ...salts }),
    decodeThreads: decodeThreads ?? testDecodePool(context, opened, { findProject }),
  }
}

export function testDecodePool(
  { logger, metrics }: FrontContext,
  opened: AsyncDisposableStack,
  given: Partial<Pick<FrontDefinitions, 'findProject'>> & Pick<DecodePoolOptions, 'overrides'>,
) {
  const { findProject = () => null, overrides = {} } = given
  const projectIdOf = (token: string) => findProject(token)?.project.id ?? null
  // Concurrent tests may keep the processors from a thread for longer than the usual ten seconds.
  const patient = { jobTimeoutMs: 60_000, ...overrides }
  return opened.adopt(createDecodePool({ projectIdOf, logger, metrics, overrides: patient }), threads =>
    threads.close(),
  )
}

/** Serves some routes of the parts on a port. The end of the test closes the parts and cuts connections. */
export async function serveParts(
  t: Scope,
  parts: ServerParts & { definitions: Pick<FrontDefinitions, 'changes'>; liveEvents?: Pick<LiveEvents, 'close'> },
  routes: readonly Route[],
  opened: AsyncDisposableStack,
): Promise<{ url: string; server: FastifyInstance }> {
  const streams = [parts.definitions.changes, ...(parts.liveEvents ? [parts.liveEvents] : [])]
  const { publicServer, listen } = composeServers(parts, { publicRoutes: routes, adminRoutes: null, streams }, opened)
  // node:test keeps the hooks of every test until its process ends, and a server holds 5 MB of routes.
  let running: FastifyInstance | null = publicServer
  t.after(async () => {
    // A graceful close would wait for a connection that is still receiving the rest of a refused body.
    running?.server.closeAllConnections()
    await opened.disposeAsync()
    running = null
  })
  const { url } = await listen()
  return { url, server: publicServer }
}

/** The handlers and the check of keys of the test that a request belongs to. */
interface Served {
  readonly handlers: ReadonlyMap<string, Route['handler']>
  readonly authorize: HttpServerOptions['authorize']
}

const servedTo = new WeakMap<IncomingMessage, Served>()
let together: FastifyInstance | undefined
const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path}`

/**
 * Serves the private API on a port, through one table of its routes for all tests of the process: to register them takes
 * longer than most tests.
 */
export async function serveTogether(
  t: Scope,
  parts: ServerParts,
  routes: readonly Route[],
  opened: AsyncDisposableStack,
): Promise<{ url: string }> {
  together ??= createHttpServer({
    routes: routes.map(route => {
      const name = nameOf(route)
      return { ...route, handler: (request, reply) => servedTo.get(request.raw)!.handlers.get(name)!(request, reply) }
    }),
    logger: createSilentLogger(),
    metrics: parts.metrics,
    authorize: (route, request, reply) => servedTo.get(request.raw)!.authorize(route, request, reply),
  })
  const { routing } = together
  await together.ready()
  let own: Served | null = {
    handlers: new Map(routes.map(route => [nameOf(route), route.handler])),
    authorize: composeAuthorizer(parts),
  }
  const url = await serve(t, (request, response) => {
    servedTo.set(request, own!)
    routing(request, response)
  })
  t.after(async () => {
    await opened.disposeAsync()
    own = null // node:test keeps the hooks of every test until its process ends
  })
  return { url }
}
