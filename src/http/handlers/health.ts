// Liveness, readiness and metrics, for load balancers, operators and Prometheus.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { findIntendedName } from '#core/nearest-name.ts'
import { type WireError, wireError } from '#wire/wire-error.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'

/** Each of the first four fields is `ok`, the code of another working state (`workingStates`), or a short reason code. */
export interface Readiness {
  readonly flags: string
  readonly capture: string
  readonly processing: string
  /** The state of the event store: whether it can be reached and still has all its rows. */
  readonly events: string
  /** A message for operators: why `capture` does not work, and which setting or file is the cause. */
  readonly capture_reason?: string
  /** A message for operators: why `processing` does not work. Present only when the state's files are missing. */
  readonly processing_reason?: string
  /** A message for operators, present only while imports are refused and live events are not. */
  readonly imports_refused?: string
  /** Present only while the primary database answers instead of the replica of `DATABASE_READ_URL`. */
  readonly read_replica?: 'unavailable'
  /** Number of accepted events that the log has lost since its list of losses was last removed; absent when 0. */
  readonly lost_records?: number
}

export interface HealthDeps {
  readonly readiness: () => Readiness | Promise<Readiness>
  /** Prometheus text of this process and of the processes that it supervises. */
  readonly metricsText: () => Promise<string>
}

/** Routes for the public port and, when there is one, the admin port. */
export function healthRoutes(deps: HealthDeps): Route[] {
  return [
    createOpenRoute('GET', '/_liveness', (_request, reply) => sendJson(reply, 200, '{"status":"ok"}')),
    createOpenRoute('GET', '/_readiness', async (request, reply) => {
      const misread = findQueryError(request.query as Query)
      if (misread !== null) return sendError(reply, misread)
      const readiness = await deps.readiness()
      sendJson(reply, isReady(readiness, request.query as Query) ? 200 : 503, JSON.stringify(readiness))
    }),
  ]
}

export function createMetricsRoute(deps: HealthDeps): Route {
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
 * The error for a query that names an unknown part of `Readiness` or misspells a parameter: ignoring it would answer 200.
 * Parameters that resemble no known one are allowed: load balancers add some to bypass caches. Source: ours,
 * docs/operating/overload.md.
 */
function findQueryError(query: Query): WireError | null {
  for (const name of Object.keys(query)) {
    if (name !== parameter && findIntendedName(name, [parameter]) !== null)
      return wireError(400, 'invalid_input', `Unknown parameter ${name}. Did you mean ${parameter}?`, name)
  }
  const unknown = readRequiredParts(query).find(part => !(parts as readonly string[]).includes(part))
  if (unknown === undefined) return null
  return wireError(400, 'invalid_input', `Unknown part. Known parts: ${parts.join(', ')}.`, parameter)
}

/** Ready as long as flags can be answered: a full disk must not remove a front from its load balancer. Source: ours. */
function isReady(readiness: Readiness, query: Query): boolean {
  const required = readRequiredParts(query)
  return parts.every(part => isPartWorking(readiness[part]) || (part !== 'flags' && !required.includes(part)))
}

/**
 * States of a part in which no request is refused: `import_only` drops live events with 200. Source:
 * docs/operating/quotas.md.
 */
const workingStates: ReadonlySet<string> = new Set(['ok', 'import_only'])

/** Names of the parts of `Readiness`, without the fields that explain them. */
export const readinessParts = parts

/** Whether a part of `Readiness` in this state does what it is configured to do. */
export function isPartWorking(state: string): boolean {
  return workingStates.has(state)
}

function readRequiredParts(query: Query): readonly string[] {
  return [query[parameter] ?? []].flat().filter(part => part !== '')
}

function createOpenRoute(
  method: 'GET',
  path: string,
  handler: (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>,
): Route {
  return { method, path, access: 'open', group: 'health', bodyLimitBytes: 1_024, handler }
}
