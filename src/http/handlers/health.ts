// Liveness, readiness and metrics: what load balancers, operators and Prometheus ask.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Route, sendJson } from '../route.ts'

/** Each part is `ok` or a short reason code. */
export interface Readiness {
  readonly flags: string
  readonly capture: string
  readonly processing: string
}

export interface HealthDeps {
  readonly readiness: () => Readiness
  /** Prometheus text of this process and of those it supervises. */
  readonly metricsText: () => Promise<string>
}

/** Routes for the public port, and for the admin port when there is one. */
export function healthRoutes(deps: HealthDeps): Route[] {
  return [
    open('GET', '/_liveness', (_request, reply) => sendJson(reply, 200, '{"status":"ok"}')),
    open('GET', '/_readiness', (request, reply) => {
      const readiness = deps.readiness()
      sendJson(reply, isReady(readiness, request) ? 200 : 503, JSON.stringify(readiness))
    }),
    // The text that load balancers set up for PostHog look for. Source: docs/wire/ingestion.md 1.1.
    open(
      'GET',
      '/',
      (_request, reply) => void reply.header('content-type', 'text/plain; charset=utf-8').send('capture'),
    ),
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

/** Ready while flags can be answered: a full disk must not take flags out of a load balancer. Source: ours. */
function isReady(readiness: Readiness, request: FastifyRequest): boolean {
  if (readiness.flags !== 'ok') return false
  const { require } = request.query as { require?: unknown }
  return require !== 'capture' || readiness.capture === 'ok'
}

function open(method: 'GET', path: string, handler: (request: FastifyRequest, reply: FastifyReply) => void): Route {
  return { method, path, access: 'open', group: 'health', bodyLimitBytes: 1_024, handler }
}
