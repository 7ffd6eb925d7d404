// OpenFeature's remote evaluation: the same evaluation as `/flags`, with OFREP's requests and answers.
// Source: docs/wire/ofrep.md.

import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { Clock } from '#ports/clock.ts'
import type { ChangeHub } from '#services/flags/change-hub.ts'
import type { DecideResult, DecideService } from '#services/flags/decide.ts'
import { findGeoipAddress } from '#wire/address/client-address.ts'
import { readVisitorFromHeaders } from '#wire/address/request-visitor.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import { computeChangeTag, encodeEventStreams, readChangeEventTag } from '#wire/flags/change-events.ts'
import type { RawDecideQuery } from '#wire/flags/decide-query.ts'
import {
  createOfrepPropertyError,
  createOverQuotaError,
  encodeOfrepError,
  type OfrepError,
  ofrepBodyBytesMax,
  ofrepErrors,
  toOfrepError,
} from '#wire/flags/ofrep-errors.ts'
import { decodeOfrepRequest, readOfrepApiKey } from '#wire/flags/ofrep-request.ts'
import { encodeOfrepAnswer, encodeOfrepBulkAnswer } from '#wire/flags/ofrep-response.ts'
import type { WireError } from '#wire/wire-error.ts'
import { computeContentHash, matchesEtag } from '../shared/etag.ts'
import { type Route, sendJson } from '../shared/route.ts'

export interface OfrepRoutesOptions {
  readonly decide: DecideService
  readonly trustedProxies: TrustedProxies
  readonly clock: Clock
  /** Whether the change stream has capacity for another client of a project. */
  readonly changes: Pick<ChangeHub, 'hasCapacity'>
  readonly findProject: (apiKey: string) => CompiledProject | null
  /** Resolves when this front serves what other processes have written until now, or has failed to load it. */
  readonly lookForChanges: () => Promise<void>
}

export function ofrepRoutes(options: OfrepRoutesOptions): Route[] {
  const common = {
    method: 'POST',
    access: 'project_key',
    group: 'flags',
    bodyLimitBytes: ofrepBodyBytesMax,
  } as const
  return [
    {
      ...common,
      path: '/ofrep/v1/evaluate/flags',
      encodeError: encodeServerError,
      handler: (request, reply) => answerEvaluation(options, null, request, reply),
    },
    {
      ...common,
      path: '/ofrep/v1/evaluate/flags/:key',
      encodeError: encodeServerError,
      handler: (request, reply) => answerEvaluation(options, (request.params as { key: string }).key, request, reply),
    },
  ]
}

/** @param flagKey null for all flags. */
async function answerEvaluation(
  options: OfrepRoutesOptions,
  flagKey: string | null,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { headers, socket } = request
  // Lets pages of other origins read the answer headers on which their next request depends.
  if (headers.origin !== undefined) reply.header('access-control-expose-headers', 'etag, retry-after')
  const apiKey = readOfrepApiKey(headers)
  if (apiKey === '') return sendOfrepError(reply, ofrepErrors.missingKey, flagKey)
  const decoded = decodeOfrepRequest(
    {
      bytes: request.body as Buffer,
      contentType: headers['content-type'],
      contentEncoding: headers['content-encoding'],
    },
    {
      apiKey,
      flagKey,
      userAgent: headers['user-agent'] ?? '',
      address: findGeoipAddress(headers, socket.remoteAddress),
    },
  )
  if (!decoded.ok) return sendOfrepError(reply, decoded.error, flagKey)
  if (isUnservedRevisionRequested(options.findProject(apiKey), request)) await options.lookForChanges()
  const nowMs = options.clock.nowMs()
  const runtime = decoded.value.selection.runtime.declared
  const readVisitor = () => readVisitorFromHeaders(headers, socket.remoteAddress, options.trustedProxies)
  const result = await options.decide.decide(decoded.value, nowMs, readVisitor, evaluation =>
    flagKey === null
      ? encodeOfrepBulkAnswer(evaluation, runtime, encodeAvailableStreams(options, evaluation.project, headers))
      : encodeOfrepAnswer(evaluation, flagKey, runtime),
  )
  if (result.kind !== 'evaluated') return sendOfrepError(reply, toOfrepRefusal(result, nowMs), flagKey)
  if (!result.answer.ok) return sendOfrepError(reply, result.answer.error, flagKey)
  if (flagKey === null) sendWithEtag(result.answer.value, request, reply)
  else sendJson(reply, 200, result.answer.value)
}

/** Whether the client names a revision that this front does not serve yet: another front may have reported it. */
function isUnservedRevisionRequested(compiled: CompiledProject | null, request: FastifyRequest): boolean {
  const heard = readChangeEventTag(request.query as RawDecideQuery)
  return heard !== null && compiled !== null && heard !== computeChangeTag(compiled.project.uuid, compiled.revision)
}

/**
 * Empty when the change stream is at capacity: a client with a refused stream would keep requesting its flags and the
 * stream.
 */
function encodeAvailableStreams(
  { changes }: OfrepRoutesOptions,
  project: CompiledProject,
  headers: IncomingHttpHeaders,
): string {
  return changes.hasCapacity(project.project.id) ? encodeEventStreams(project, headers) : ''
}

/** The tag is a hash of the answer itself, since the answer also depends on the stored person and on time. */
function sendWithEtag(body: string, { headers }: FastifyRequest, reply: FastifyReply): void {
  const etag = `"${computeContentHash(body)}"`
  reply.header('etag', etag)
  if (matchesEtag(headers['if-none-match'], etag)) void reply.code(304).send()
  else sendJson(reply, 200, body)
}

function toOfrepRefusal(result: Exclude<DecideResult<never>, { kind: 'evaluated' }>, nowMs: number): OfrepError {
  switch (result.kind) {
    case 'unknown_key':
      return ofrepErrors.unknownKey
    case 'missing_distinct_id':
      return ofrepErrors.targetingKeyMissing
    case 'missing_property':
      return createOfrepPropertyError(result.property)
    case 'visitor_unknown':
      return ofrepErrors.visitorUnknown
    case 'busy':
      return ofrepErrors.busy
    case 'disabled':
    case 'quota_limited':
      return createOverQuotaError(computeQuotaRetrySeconds(nowMs))
    default:
      return result satisfies never
  }
}

/**
 * The maximum wait. Providers send no requests before the wait ends, so with a short wait, a raised quota takes effect
 * before the month ends.
 */
const quotaRetrySecondsMax = 300

/** Seconds until the quota's month ends, at most `quotaRetrySecondsMax`. @param nowMs epoch ms. */
function computeQuotaRetrySeconds(nowMs: number): number {
  const now = new Date(nowMs)
  const nextMonthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)
  return Math.min(quotaRetrySecondsMax, Math.max(1, Math.ceil((nextMonthMs - nowMs) / 1000)))
}

export function sendOfrepError(reply: FastifyReply, error: OfrepError, flagKey: string | null): void {
  if (error.retryAfterSeconds !== null) reply.header('retry-after', error.retryAfterSeconds)
  sendJson(reply, error.status, encodeOfrepError(error, flagKey))
}

/** Encodes errors that the server finds outside the handler, such as a body that is too large. They name no flag. */
export function encodeServerError(error: WireError): string {
  return encodeOfrepError(toOfrepError(error), null)
}
