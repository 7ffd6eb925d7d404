// The v1 capture endpoints, one for all events and one for AI events only. The handler checks the headers before it reads
// the body, passes the events to the capture service and answers with a result for each event; bodies that would block the
// event loop are decoded in a thread. Source: docs/wire/ingestion.md 4.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OutcomeTable } from '#core/capture/outcome-table.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Clock } from '#ports/clock.ts'
import type { ThreadPool } from '#ports/thread-pool.ts'
import type { CaptureService } from '#services/capture/capture.ts'
import type { CaptureOutcome } from '#services/capture/capture-outcome.ts'
import { runInSlices } from '#services/shared/run-in-slices.ts'
import { findClientAddress } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import { encodeV1Error, v1BodyBytesMax, v1CaptureErrors, v1RetryAfterSeconds } from '#wire/capture-v1/batch-errors.ts'
import { readV1Headers, requestIdHeader, type V1Headers } from '#wire/capture-v1/batch-headers.ts'
import { encodeV1Results, readV1Results, type V1Answer, type V1Results } from '#wire/capture-v1/batch-response.ts'
import { prepareV1OnEventLoop, type V1CaptureInput } from '#wire/capture-v1/decode-batch.ts'
import type { DecodeJobs } from '#wire/threads/decode-jobs.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Route, sendJson } from '../shared/route.ts'
import { decodeInThread } from './decode-in-thread.ts'

export interface CaptureV1RouteDeps {
  readonly service: CaptureService
  readonly decodeThreads: ThreadPool<DecodeJobs>
  readonly trustedProxies: TrustedProxies
  readonly clock: Clock
  /** `PENNON_REROUTE_OLDER_THAN_DAYS`: older live events take the historical lane; none do when absent. */
  readonly rerouteOlderThanMs?: number | null
}

const capturePaths = [
  { path: '/i/v1/analytics/events', aiOnly: false },
  { path: '/i/v1/ai/events', aiOnly: true },
] as const

/** Headers that were read before the body, kept for the handler that runs after the body has arrived. */
type ReadHeaders = WeakMap<FastifyRequest, V1Headers>

export function captureV1Routes(deps: CaptureV1RouteDeps): Route[] {
  const readHeaders: ReadHeaders = new WeakMap()
  return capturePaths.map(
    ({ path, aiOnly }): Route => ({
      method: 'POST',
      path,
      access: 'project_key',
      group: 'capture_v1',
      bodyLimitBytes: v1BodyBytesMax,
      tooLarge: v1CaptureErrors.bodyTooLarge,
      stalled: v1CaptureErrors.bodyReadTimeout,
      busy: v1CaptureErrors.unavailable,
      encodeError: encodeV1Error,
      retryAfterSeconds: v1RetryAfterSeconds,
      echoes: [requestIdHeader],
      beforeBody: (request, reply) => checkHeaders(deps, readHeaders, request, reply),
      refused: (request, { code }) => {
        const token = readHeaders.get(request)?.token ?? null
        deps.service.keepRefused({ token, reason: code, field: '', body: '' }, deps.clock.nowMs())
      },
      handler: (request, reply) => handleBatch(deps, readHeaders.get(request)!, aiOnly, request, reply),
    }),
  )
}

function checkHeaders(
  { service, clock }: CaptureV1RouteDeps,
  readHeaders: ReadHeaders,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  const headers = readV1Headers(request.headers)
  if (headers.ok) {
    readHeaders.set(request, headers.value)
    return true
  }
  const { error, token } = headers.error
  service.keepRefused({ token, reason: error.code, field: error.attr ?? '', body: '' }, clock.nowMs())
  sendV1Error(reply, error)
  return false
}

async function handleBatch(
  deps: CaptureV1RouteDeps,
  headers: V1Headers,
  aiOnly: boolean,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { service, clock } = deps
  const received = {
    receivedAtMs: clock.nowMs(),
    ip: findClientAddress(request.headers, request.raw.socket.remoteAddress, deps.trustedProxies),
    rerouteOlderThanMs: deps.rerouteOlderThanMs ?? null,
  }
  const input: V1CaptureInput = { headers, body: request.body as Buffer, aiOnly }
  const inline = prepareV1OnEventLoop(input, received, service.visitorsOf)
  const toJob = (body: Uint8Array<ArrayBuffer>) => ({ input: { ...input, body }, received })
  const prepared =
    inline.kind === 'too_much_work'
      ? await decodeInThread(deps.decodeThreads, 'capture_v1', input.body, toJob, reply)
      : inline
  const { token } = headers
  if (prepared === null) return sendV1Error(reply, v1CaptureErrors.unavailable)
  if (prepared.kind === 'refused') {
    const { error, ...refused } = prepared
    service.keepRefused({ ...refused, token, reason: error.code, field: error.attr ?? '' }, received.receivedAtMs)
    return sendV1Error(reply, error)
  }
  return answerWhenStored(service.capture(prepared, received.receivedAtMs, readResultsInSlices), reply)
}

function readResultsInSlices(table: OutcomeTable): MaybePromise<V1Results> {
  return runInSlices(readV1Results(table))
}

async function answerWhenStored(stored: Promise<CaptureOutcome<V1Results>>, reply: FastifyReply): Promise<void> {
  const outcome = await stored
  switch (outcome.kind) {
    case 'stored':
      if (outcome.answer.isOverQuota) return sendV1Error(reply, v1CaptureErrors.billingLimit)
      return sendAnswer(reply, await runInSlices(encodeV1Results(outcome.answer, true)))
    case 'unavailable':
      return sendAnswer(reply, await runInSlices(encodeV1Results(outcome.answer, false)))
    case 'unknown_project':
      return sendV1Error(reply, v1CaptureErrors.invalidApiToken)
    case 'refused':
      throw new Error(`v1 batch rejected because of one event: ${outcome.refusal}`)
  }
}

function sendAnswer(reply: FastifyReply, { mayRetry, body }: V1Answer): void {
  if (mayRetry) reply.header('retry-after', String(v1RetryAfterSeconds))
  sendJson(reply, 200, body)
}

function sendV1Error(reply: FastifyReply, error: WireError): void {
  if (error.status >= 500) reply.header('retry-after', String(v1RetryAfterSeconds))
  sendJson(reply, error.status, encodeV1Error(error))
}
