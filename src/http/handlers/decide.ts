// `/decide` and `/flags`: parse, call one service, encode; bodies that would block the event loop are decoded in a thread.
// Source: docs/wire/service.md §4.1; docs/wire/evaluation.md 1.1.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { isUuid } from '#core/events/uuid.ts'
import type { EvaluationRequest } from '#core/flags/evaluation/evaluation-request.ts'
import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { ThreadPool } from '#ports/thread-pool.ts'
import type { DecideResult, DecideService } from '#services/flags/decide.ts'
import { isSecretKey } from '#services/manage/generate-key.ts'
import { findClientAddress, findGeoipAddress } from '#wire/address/client-address.ts'
import { readVisitorFromHeaders } from '#wire/address/request-visitor.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import { bodyBytesMax, createMissingPropertyError, decideErrors } from '#wire/flags/decide-errors.ts'
import {
  chooseMinimalShape,
  type DecideEndpoint,
  type DecideQuery,
  parseDecideQuery,
  type RawDecideQuery,
} from '#wire/flags/decide-query.ts'
import type { DecideContext } from '#wire/flags/decide-request.ts'
import {
  type AnswerOptions,
  encodeEvaluation,
  encodeMinimalAnswer,
  encodeWithoutFlags,
} from '#wire/flags/decide-response.ts'
import { decodeFlagsOnEventLoop, restoreRequestLiterals } from '#wire/flags/decode-flags.ts'
import type { FlagsBody } from '#wire/flags/flags-body.ts'
import type { DecodeJobs } from '#wire/threads/decode-jobs.ts'
import type { WireError } from '#wire/wire-error.ts'
import { requestIdHeader } from '../shared/request-id.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'
import { decodeInThread } from './decode-in-thread.ts'

export interface DecideRoutesOptions {
  readonly decide: DecideService
  readonly decodeThreads: ThreadPool<DecodeJobs>
  readonly trustedProxies: TrustedProxies
  readonly clock: Clock
  /** Must be cheap: called for each request. */
  readonly isOverRecordingQuota: (project: Project) => boolean
  /** Returns a version-4 UUID in lower case. */
  readonly newUuid: () => string
}

export function decideRoutes(options: DecideRoutesOptions): Route[] {
  return (['decide', 'flags'] as const).flatMap(endpoint => buildEndpointRoutes(endpoint, options))
}

function buildEndpointRoutes(endpoint: DecideEndpoint, options: DecideRoutesOptions): Route[] {
  const common = { path: `/${endpoint}`, group: 'flags', bodyLimitBytes: bodyBytesMax } as const
  const evaluate: Route['handler'] = (request, reply) => answerEvaluation(endpoint, options, request, reply)
  return [
    { ...common, method: 'GET', access: 'open', handler: (...call) => answerMinimal(endpoint, options, ...call) },
    {
      ...common,
      method: 'POST',
      access: 'project_key',
      tooLarge: decideErrors.bodyTooLarge,
      busy: decideErrors.transient,
      handler: evaluate,
    },
    { ...common, method: 'OPTIONS', access: 'open', handler: (_request, reply) => void reply.code(200).send() },
    { ...common, method: 'HEAD', access: 'open', handler: (_request, reply) => sendJson(reply, 200, '') },
  ]
}

/** Answers a GET request, without flags, without reading its key or body. Source: docs/wire/evaluation.md 2.6. */
function answerMinimal(
  path: DecideEndpoint,
  { clock, newUuid }: DecideRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const endpoint = findOriginalEndpoint(path, request)
  const shape = chooseMinimalShape(request.query as RawDecideQuery, endpoint)
  const requestId = chooseRequestId(request, newUuid)
  sendJson(reply, 200, encodeMinimalAnswer({ shape, endpoint, requestId, evaluatedAtMs: clock.nowMs() }))
}

function answerEvaluation(
  path: DecideEndpoint,
  options: DecideRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
): void | Promise<void> {
  const endpoint = findOriginalEndpoint(path, request)
  const query = parseDecideQuery(request.query as RawDecideQuery, endpoint)
  if (!query.ok) return sendAnswer(reply, query)
  const body = toFlagsBody(request, query.value)
  const context = toDecideContext(endpoint, query.value, request)
  const parsed = decodeFlagsOnEventLoop(body, context)
  if (parsed.ok) return answerParsed(options, parsed.value, context, request, reply)
  if (parsed.error === 'too_much_work') return answerFromThread(options, body, context, request, reply)
  sendAnswer(reply, err(parsed.error))
}

async function answerFromThread(
  options: DecideRoutesOptions,
  body: FlagsBody,
  context: DecideContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const address = findClientAddress(request.headers, request.raw.socket.remoteAddress, options.trustedProxies)
  const toJob = (bytes: Uint8Array<ArrayBuffer>) => ({ body: { ...body, bytes }, context, address })
  const posted = await decodeInThread(options.decodeThreads, 'flags', body.bytes, toJob, reply)
  const parsed = posted === null ? err(decideErrors.transient) : restoreRequestLiterals(posted)
  if (parsed.ok) return answerParsed(options, parsed.value, context, request, reply)
  sendAnswer(reply, parsed)
}

function answerParsed(
  options: DecideRoutesOptions,
  asked: EvaluationRequest,
  { endpoint, query }: DecideContext,
  request: FastifyRequest,
  reply: FastifyReply,
): void | Promise<void> {
  const nowMs = options.clock.nowMs()
  const answer: AnswerOptions = {
    shape: query.shape,
    endpoint,
    withConfig: query.withConfig,
    requestId: chooseRequestId(request, options.newUuid),
    evaluatedAtMs: nowMs,
    page: request.headers,
    isOverRecordingQuota: options.isOverRecordingQuota,
  }
  const readVisitor = () =>
    readVisitorFromHeaders(request.headers, request.raw.socket.remoteAddress, options.trustedProxies)
  const result = options.decide.decide(asked, nowMs, readVisitor, evaluation => encodeEvaluation(evaluation, answer))
  if (result instanceof Promise) return result.then(decided => sendAnswer(reply, encodeResult(decided, asked, answer)))
  sendAnswer(reply, encodeResult(result, asked, answer))
}

/** A proxy that rewrites `/decide` to `/flags` names the original path in a header. */
function findOriginalEndpoint(path: DecideEndpoint, request: FastifyRequest): DecideEndpoint {
  return request.headers['x-original-endpoint'] === 'decide' ? 'decide' : path
}

function toFlagsBody({ body, headers }: FastifyRequest, query: DecideQuery): FlagsBody {
  return {
    bytes: body as Buffer,
    contentType: headers['content-type'],
    contentEncoding: headers['content-encoding'],
    compression: query.compression,
  }
}

function toDecideContext(
  endpoint: DecideEndpoint,
  query: DecideQuery,
  { headers, socket }: FastifyRequest,
): DecideContext {
  return {
    endpoint,
    query,
    userAgent: headers['user-agent'] ?? '',
    hasBrowserHeader: browserHeaders.some(name => headers[name] !== undefined),
    address: findGeoipAddress(headers, socket.remoteAddress),
  }
}

/** Source: docs/wire/evaluation.md 5.14. */
const browserHeaders = ['origin', 'referer', 'sec-fetch-mode', 'sec-fetch-site']

function encodeResult(
  result: DecideResult<string>,
  asked: EvaluationRequest,
  answer: AnswerOptions,
): Result<string, WireError> {
  switch (result.kind) {
    case 'evaluated':
      return ok(result.answer)
    case 'disabled':
    case 'quota_limited':
      return ok(encodeWithoutFlags(result.project, result.kind, answer))
    case 'unknown_key':
      return err(isSecretKey(asked.apiKey) ? decideErrors.secretKeyAsToken : decideErrors.unknownApiKey)
    case 'missing_distinct_id':
      return err(decideErrors.missingDistinctId)
    case 'missing_property':
      return err(createMissingPropertyError(result.property))
    case 'visitor_unknown':
    case 'busy':
      return err(decideErrors.transient)
    default:
      return result satisfies never
  }
}

function sendAnswer(reply: FastifyReply, answer: Result<string, WireError>): void {
  if (answer.ok) sendJson(reply, 200, answer.value)
  else {
    if (answer.error.status === 503) reply.header('retry-after', retryAfterSeconds)
    sendError(reply, answer.error)
  }
}

/** A second is enough for a thread to be free, and callers wait only a few seconds. SDKs that retry ignore this header. */
const retryAfterSeconds = '1'

/** The request's id, or a new UUID when the caller chose an id that is not a UUID. */
function chooseRequestId({ id, headers }: FastifyRequest, newUuid: () => string): string {
  if (headers[requestIdHeader] === undefined) return id // ours, a UUID already
  return isUuid(id) ? id.toLowerCase() : newUuid()
}
