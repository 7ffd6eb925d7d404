// Liveness, readiness and metrics: what load balancers, operators and Prometheus ask.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { nearMiss } from '#core/nearest-name.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'

/** Each part is `ok`, a short reason code, or, where it works in a way of its own, a code of `workingStates`. */
export interface Readiness {
  readonly flags: string
  readonly capture: string
  readonly processing: string
  /** Whether the event store has what was stored. */
  readonly events: string
  /** A sentence for people: why `capture` does not work, and which setting or file it is about. */
  readonly capture_reason?: string
  /** The same of `processing`, where it does not for lack of the state's files. */
  readonly processing_reason?: string
  /** A sentence for people, there only while imports are refused and live events are not. */
  readonly imports_refused?: string
  /** There only while the primary database answers for the replica of `DATABASE_READ_URL`. */
  readonly read_replica?: 'unavailable'
  /** Accepted events that the log has lost since somebody last removed its list of them; there only where there are some. */
  readonly lost_records?: number
}

export interface HealthDeps {
  readonly readiness: () => Readiness | Promise<Readiness>
  /** Prometheus text of this process and of those it supervises. */
  readonly metricsText: () => Promise<string>
}

/** Routes for the public port, and for the admin port when there is one. */
export function healthRoutes(deps: HealthDeps): Route[] {
  return [
    open('GET', '/_liveness', (_request, reply) => sendJson(reply, 200, '{"status":"ok"}')),
    open('GET', '/_readiness', async (request, reply) => {
      const misread = misreadQuery(request.query as Query)
      if (misread !== null) return sendError(reply, misread)
      const readiness = await deps.readiness()
      sendJson(reply, isReady(readiness, request.query as Query) ? 200 : 503, JSON.stringify(readiness))
    }),
  ]
}

export function metricsRoute(deps: HealthDeps): Route {
  return {
    method: 'GET',
    path: '/metrics',
    access: 'operator',
    group: 'health',
    bodyLimitBytes: 1_024,
    handler: async (_request, reply) => {
      reply.header('content-type', 'text/plain; version=0.0.4; charset=utf-8').send(await deps.metricsText())
    },
  }
}

type Query = Readonly<Record<string, string | readonly string[]>>

const parameter = 'require'
const parts = ['flags', 'capture', 'processing', 'events'] as const satisfies readonly (keyof Readiness)[]

/**
 * An unknown part, or a misspelt parameter, would be answered 200 whatever its author meant to ask, so both are errors.
 * Other parameters do not matter: load balancers add some against caches.
 * Source: ours, docs/operating/overload.md.
 */
function misreadQuery(query: Query): WireError | null {
  for (const name of Object.keys(query)) {
    if (name !== parameter && nearMiss(name, [parameter]) !== null)
      return wireError(400, 'invalid_input', `Unknown parameter ${name}. Did you mean ${parameter}?`, name)
  }
  const unknown = requiredParts(query).find(part => !(parts as readonly string[]).includes(part))
  if (unknown === undefined) return null
  return wireError(400, 'invalid_input', `Nothing is called so here. There are ${parts.join(', ')}.`, parameter)
}

/** Ready while flags can be answered: a full disk must not take flags out of a load balancer. Source: ours. */
function isReady(readiness: Readiness, query: Query): boolean {
  const required = requiredParts(query)
  return parts.every(part => isWorking(readiness[part]) || (part !== 'flags' && !required.includes(part)))
}

/** Nothing is refused: of `import_only`, what is not taken is answered 200. Source: docs/operating/quotas.md, import-only mode. */
const workingStates: ReadonlySet<string> = new Set(['ok', 'import_only'])

/** Names of the parts, without what is said beside them. */
export const readinessParts = parts

/** Whether a part of `Readiness` does what it is set up to do. */
export function isWorking(state: string): boolean {
  return workingStates.has(state)
}

function requiredParts(query: Query): readonly string[] {
  return [query[parameter] ?? []].flat().filter(part => part !== '')
}

function open(
  method: 'GET',
  path: string,
  handler: (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>,
): Route {
  return { method, path, access: 'open', group: 'health', bodyLimitBytes: 1_024, handler }
}
