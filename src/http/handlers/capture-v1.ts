// The v1 capture endpoints, for all events and for AI events alone. Judges the headers before the body is read, gives the
// events to the capture service and answers with a result for each; bodies that would hold the event loop are decoded in a
// thread. Source: docs/wire/ingestion.md 4.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { V1Results } from '#core/capture/prepare-v1-events.ts'
import type { Clock } from '#ports/clock.ts'
import { PortError } from '#ports/port-error.ts'
import type { CaptureService } from '#services/capture/capture.ts'
import type { CaptureOutcome } from '#services/capture/capture-outcome.ts'
import { inSlices } from '#services/shared/in-slices.ts'
import { clientAddress } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import { type PreparedV1Capture, prepareV1Inline, type V1CaptureInput } from '#wire/capture-v1/decode-v1-capture.ts'
import {
  encodeV1Error,
  v1BodyBytesMax,
  v1CaptureErrors,
  v1RetryAfterSeconds,
} from '#wire/capture-v1/v1-capture-errors.ts'
import { readV1Headers, requestIdHeader, type V1Headers } from '#wire/capture-v1/v1-capture-headers.ts'
import { encodeDiscarded, encodeNotStored, encodeStored, type V1Answer } from '#wire/capture-v1/v1-capture-response.ts'
import { type DecodePool, movableBytes, type V1CaptureJob } from '#wire/threads/decode-thread.ts'
import type { WireError } from '#wire/wire-error.ts'
import { clientGone } from '../bodies/client-gone.ts'
import { type Route, sendJson } from '../shared/route.ts'

export interface CaptureV1RouteDependencies {
  readonly service: CaptureService
  /** Runs `wire/threads/decode-thread.ts`. */
  readonly decodeThreads: DecodePool
  readonly trustedProxies: TrustedProxies
  readonly clock: Clock
  /** `PENNON_REROUTE_OLDER_THAN_DAYS`: older live events take the historical lane; none do when absent. */
  readonly rerouteOlderThanMs?: number | null
}

const capturePaths = [
  { path: '/i/v1/analytics/events', aiOnly: false },
  { path: '/i/v1/ai/events', aiOnly: true },
] as const

/** What was read before the body, for the handler that runs behind it. */
type ReadHeaders = WeakMap<FastifyRequest, V1Headers>

export function captureV1Routes(dependencies: CaptureV1RouteDependencies): Route[] {
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
      beforeBody: (request, reply) => judgeHeaders(dependencies, readHeaders, request, reply),
      refused: (request, { code }) => {
        const token = readHeaders.get(request)?.token ?? null
        dependencies.service.keepRefused({ token, reason: code, field: '', body: '' }, dependencies.clock.nowMs())
      },
      handler: (request, reply) => handleBatch(dependencies, readHeaders.get(request)!, aiOnly, request, reply),
    }),
  )
}

function judgeHeaders(
  { service, clock }: CaptureV1RouteDependencies,
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
  dependencies: CaptureV1RouteDependencies,
  headers: V1Headers,
  aiOnly: boolean,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { service, clock } = dependencies
  const received = {
    receivedAtMs: clock.nowMs(),
    ip: clientAddress(request.headers, request.raw.socket.remoteAddress, dependencies.trustedProxies),
    rerouteOlderThanMs: dependencies.rerouteOlderThanMs ?? null,
  }
  const input: V1CaptureInput = { headers, body: request.body as Buffer, aiOnly }
  const inline = prepareV1Inline(input, received)
  const prepared =
    inline.kind === 'too_much_work' ? await prepareElsewhere(dependencies, input, received, reply) : inline
  const { token } = headers
  if (prepared === null) return sendV1Error(reply, v1CaptureErrors.unavailable)
  if (prepared.kind === 'refused') {
    const { error, ...refused } = prepared
    service.keepRefused({ ...refused, token, reason: error.code, field: error.attr ?? '' }, received.receivedAtMs)
    return sendV1Error(reply, error)
  }
  const { historicalMigration, outcome: events } = prepared
  const stored = service.capturePrepared(
    { token, protocol: 'v1', historicalMigration, eventCount: events.verdicts.length, outcome: events },
    received.receivedAtMs,
    '',
  )
  // The records belong to the log from here on. While it waits for the disk, only what the answer needs is kept.
  const { uuids, verdicts } = events
  return answerWhenStored(stored, { uuids, verdicts }, reply)
}

/** Prepares a request in a decode thread. @returns null when the threads cannot take it now. */
async function prepareElsewhere(
  { decodeThreads }: CaptureV1RouteDependencies,
  input: V1CaptureInput,
  received: V1CaptureJob['received'],
  reply: FastifyReply,
): Promise<PreparedV1Capture | null> {
  const body = movableBytes(input.body)
  const job: V1CaptureJob = { kind: 'capture_v1', input: { ...input, body }, received }
  try {
    return await decodeThreads.run(job, body.length, [body.buffer], clientGone(reply))
  } catch (error) {
    if (!(error instanceof PortError)) throw error
    return null
  }
}

async function answerWhenStored(
  stored: Promise<CaptureOutcome>,
  results: V1Results,
  reply: FastifyReply,
): Promise<void> {
  const outcome = await stored
  switch (outcome.kind) {
    case 'accepted':
      return sendAnswer(reply, await inSlices(encodeStored(results, outcome.overQuota.events, outcome.hot?.events)))
    case 'unavailable':
      // Whose events they are is not known: what is wrong with some of them can be told when it is.
      if (outcome.isProjectUnknown === true) return sendV1Error(reply, v1CaptureErrors.unavailable)
      return sendAnswer(reply, await inSlices(encodeNotStored(results)))
    case 'discarded':
      return sendAnswer(reply, await inSlices(encodeDiscarded(results)))
    case 'over_quota':
      return sendV1Error(reply, v1CaptureErrors.billingLimit)
    case 'unknown_project':
      return sendV1Error(reply, v1CaptureErrors.invalidApiToken)
    case 'refused':
      throw new Error(`an event refused its whole v1 batch: ${outcome.refusal}`)
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
