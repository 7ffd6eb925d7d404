// `/decide` and `/flags`: parse, call one service, encode. Source: docs/wire/service.md §4.1; docs/wire/evaluation.md 1.1.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { EvaluationRequest } from '#core/flags/evaluation-request.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { DecideResult, DecideService } from '#services/decide.ts'
import { geoipAddress } from '#wire/client-address.ts'
import { bodyBytesMax, decideErrors } from '#wire/decide-errors.ts'
import {
  type DecideEndpoint,
  type DecideQuery,
  minimalShape,
  parseDecideQuery,
  type RawQuery,
} from '#wire/decide-query.ts'
import { parseDecideRequest } from '#wire/decide-request.ts'
import { type AnswerOptions, encodeEvaluation, encodeMinimal, encodeWithoutFlags } from '#wire/decide-response.ts'
import { type DecompressLz64, decodeFlagsBody } from '#wire/flags-body.ts'
import { encodeWireError, type WireError } from '#wire/wire-error.ts'
import { type Route, sendJson } from '../route.ts'

export interface DecideRoutesOptions {
  readonly decide: DecideService
  readonly clock: Clock
  /** A version-4 UUID, lower case. */
  readonly newUuid: () => string
  /** Without it a request that announces lz64 is refused. */
  readonly decompressLz64?: DecompressLz64
}

export function decideRoutes(options: DecideRoutesOptions): Route[] {
  return (['decide', 'flags'] as const).flatMap(endpoint => routesOf(endpoint, options))
}

function routesOf(endpoint: DecideEndpoint, options: DecideRoutesOptions): Route[] {
  const common = { path: `/${endpoint}`, group: 'flags', bodyLimitBytes: bodyBytesMax } as const
  const evaluate: Route['handler'] = (request, reply) => answerEvaluation(endpoint, options, request, reply)
  return [
    { ...common, method: 'GET', access: 'open', handler: (...call) => answerMinimal(endpoint, options, ...call) },
    { ...common, method: 'POST', access: 'project_key', tooLarge: decideErrors.bodyTooLarge, handler: evaluate },
    { ...common, method: 'OPTIONS', access: 'open', handler: (_request, reply) => void reply.code(200).send() },
    { ...common, method: 'HEAD', access: 'open', handler: (_request, reply) => sendJson(reply, 200, '') },
  ]
}

/** Neither key nor body is looked at, and no flag is named. Source: docs/wire/evaluation.md 2.6. */
function answerMinimal(
  path: DecideEndpoint,
  { clock, newUuid }: DecideRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const endpoint = endpointOf(path, request)
  const shape = minimalShape(request.query as RawQuery, endpoint)
  const requestId = requestIdOf(request, newUuid)
  sendJson(reply, 200, encodeMinimal({ shape, endpoint, requestId, evaluatedAtMs: clock.nowMs() }))
}

function answerEvaluation(
  path: DecideEndpoint,
  options: DecideRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): void | Promise<void> {
  const endpoint = endpointOf(path, request)
  const query = parseDecideQuery(request.query as RawQuery, endpoint)
  if (!query.ok) return send(reply, query)
  const parsed = readRequest(endpoint, query.value, request, options.decompressLz64)
  if (!parsed.ok) return send(reply, parsed)

  const nowMs = options.clock.nowMs()
  const answer: AnswerOptions = {
    shape: query.value.shape,
    endpoint,
    withConfig: query.value.withConfig,
    requestId: requestIdOf(request, options.newUuid),
    evaluatedAtMs: nowMs,
  }
  const result = options.decide.decide(parsed.value, nowMs)
  if (result instanceof Promise) return result.then(decided => send(reply, answerOf(decided, answer)))
  send(reply, answerOf(result, answer))
}

/** A proxy that rewrites `/decide` to `/flags` says so in a header. */
function endpointOf(path: DecideEndpoint, request: FastifyRequest): DecideEndpoint {
  return request.headers['x-original-endpoint'] === 'decide' ? 'decide' : path
}

function readRequest(
  endpoint: DecideEndpoint,
  query: DecideQuery,
  request: FastifyRequest,
  decompressLz64: DecompressLz64 | undefined,
): Result<EvaluationRequest, WireError> {
  const { headers } = request
  const body = decodeFlagsBody(
    {
      bytes: request.body as Buffer,
      contentType: headers['content-type'],
      contentEncoding: headers['content-encoding'],
      compression: query.compression,
    },
    decompressLz64,
  )
  if (!body.ok) return body
  return parseDecideRequest(body.value, {
    endpoint,
    query,
    userAgent: headers['user-agent'] ?? '',
    hasBrowserHeader: browserHeaders.some(name => headers[name] !== undefined),
    address: geoipAddress(headers, request.socket.remoteAddress),
  })
}

/** Source: docs/wire/evaluation.md 5.14. */
const browserHeaders = ['origin', 'referer', 'sec-fetch-mode', 'sec-fetch-site']

function answerOf(result: DecideResult, answer: AnswerOptions): Result<string, WireError> {
  switch (result.kind) {
    case 'evaluated':
      return ok(encodeEvaluation(result.evaluation, answer))
    case 'disabled':
    case 'quota_limited':
      return ok(encodeWithoutFlags(result.project, result.kind, answer))
    case 'unknown_key':
      return err(decideErrors.unknownApiKey)
    case 'missing_distinct_id':
      return err(decideErrors.missingDistinctId)
    default:
      return result satisfies never
  }
}

function send(reply: FastifyReply, answer: Result<string, WireError>): void {
  if (answer.ok) sendJson(reply, 200, answer.value)
  else sendJson(reply, answer.error.status, encodeWireError(answer.error))
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The caller's own id when it is a UUID. */
function requestIdOf(request: FastifyRequest, newUuid: () => string): string {
  const sent = request.headers['x-request-id']
  return typeof sent === 'string' && uuidForm.test(sent) ? sent.toLowerCase() : newUuid()
}
