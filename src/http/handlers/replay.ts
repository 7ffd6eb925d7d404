// `/s/`: where SDKs post what a visitor's session looked like. Reads the request, gives it to the replay service and encodes
// the outcome; bodies that would hold the event loop are decoded in a thread.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RandomUint32 } from '#core/capture/event-uuid.ts'
import type { Clock } from '#ports/clock.ts'
import { PortError } from '#ports/port-error.ts'
import type { CaptureService } from '#services/capture/capture.ts'
import type { ReplayOutcome, ReplayService } from '#services/capture/capture-replay.ts'
import { clientAddress } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import { captureErrors } from '#wire/capture/capture-errors.ts'
import { parseCaptureQuery, type RawQuery } from '#wire/capture/capture-query.ts'
import { decodeReplayInline, type PreparedReplay, type ReplayInput } from '#wire/recordings/decode-replay.ts'
import { replayBodyBytesMax, replayErrors, replayRefused } from '#wire/recordings/replay-errors.ts'
import { type DecodePool, movableBytes, type ReplayJob } from '#wire/threads/decode-thread.ts'
import type { WireError } from '#wire/wire-error.ts'
import { clientGone } from '../bodies/client-gone.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'
import { keyBesideBody, keyInHeader } from './key-beside-body.ts'

export interface ReplayRouteDependencies {
  readonly replay: ReplayService
  readonly keepRefused: CaptureService['keepRefused']
  /** Runs `wire/threads/decode-thread.ts`. */
  readonly decodeThreads: DecodePool
  readonly trustedProxies: TrustedProxies
  readonly clock: Clock
  readonly random: RandomUint32
}

/** Source: docs/wire/ingestion.md 1.6. */
const accepted = '{"status":"Ok"}'
/** posthog-js then stops sending recordings for a minute at a time. Source: docs/wire/ingestion.md 1.8. */
const overQuota = '{"status":"Ok","quota_limited":["recordings"]}'
const retryAfterSecondsMax = 30

export function replayRoutes(dependencies: ReplayRouteDependencies): Route[] {
  const post: Route = {
    method: 'POST',
    path: '/s',
    access: 'project_key',
    group: 'capture',
    bodyLimitBytes: replayBodyBytesMax,
    tooLarge: replayErrors.bodyTooLarge,
    stalled: captureErrors.bodyReadTimeout,
    busy: captureErrors.transient,
    refused: (request, error) => keepUnread(dependencies, request, error),
    handler: (request, reply) => handleReplay(dependencies, request, reply),
  }
  return [post, { ...post, method: 'GET', takesBodyOfGet: true }]
}

async function handleReplay(
  dependencies: ReplayRouteDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { clock, random, decodeThreads, keepRefused, replay } = dependencies
  const receivedAtMs = clock.nowMs()
  const query = parseCaptureQuery(request.query as RawQuery)
  if (!query.ok) {
    keepUnread(dependencies, request, query.error)
    return sendError(reply, query.error)
  }
  const { headers } = request
  const { data, compression, sentAtMs, token, beacon } = query.value
  const userAgent = headers['user-agent'] ?? ''
  const input: ReplayInput = {
    body: request.body as Buffer,
    data,
    compression,
    contentType: headers['content-type'] ?? '',
    contentEncoding: headers['content-encoding'] ?? '',
    querySentAtMs: sentAtMs,
    fallbackToken: token ?? keyInHeader(request),
  }
  let prepared = decodeReplayInline(input, { receivedAtMs, random, userAgent })
  if (prepared === 'too_much_work') {
    const elsewhere = await decodeElsewhere(decodeThreads, input, reply, {
      receivedAtMs,
      userAgent,
      address: clientAddress(headers, request.raw.socket.remoteAddress, dependencies.trustedProxies),
    })
    if (elsewhere === 'unavailable') return refuseForNow(reply, random)
    prepared = elsewhere
  }
  if (prepared.kind === 'refused') {
    const { error, token: namedToken, body } = prepared
    keepRefused({ token: namedToken, reason: error.code, field: error.attr ?? '', body, lane: 'replay' }, receivedAtMs)
    return sendError(reply, error)
  }
  answer(reply, await replay.capture(prepared, receivedAtMs), { beacon, random })
}

/** A request whose body is not read: its project is known where its key stands outside of the body. */
function keepUnread({ clock, keepRefused }: ReplayRouteDependencies, request: FastifyRequest, error: WireError): void {
  const token = keyBesideBody(request)
  keepRefused({ token, reason: error.code, field: error.attr ?? '', body: '', lane: 'replay' }, clock.nowMs())
}

async function decodeElsewhere(
  decodeThreads: DecodePool,
  input: ReplayInput,
  reply: FastifyReply,
  of: Pick<ReplayJob, 'receivedAtMs' | 'userAgent' | 'address'>,
): Promise<PreparedReplay | 'unavailable'> {
  const body = movableBytes(input.body)
  const job: ReplayJob = { kind: 'replay', input: { ...input, body }, ...of }
  try {
    return await decodeThreads.run(job, body.length, [body.buffer], clientGone(reply))
  } catch (error) {
    if (!(error instanceof PortError)) throw error
    return 'unavailable'
  }
}

function answer(
  reply: FastifyReply,
  outcome: ReplayOutcome,
  { beacon, random }: { beacon: boolean; random: RandomUint32 },
): void {
  switch (outcome.kind) {
    case 'accepted':
      if (beacon) reply.code(204).send()
      else sendJson(reply, 200, accepted)
      break
    case 'over_quota':
      sendJson(reply, 200, overQuota)
      break
    case 'unknown_project':
      sendError(reply, captureErrors.unknownApiKey)
      break
    case 'unfit':
      sendError(reply, replayRefused(outcome.refusal))
      break
    case 'unavailable':
      refuseForNow(reply, random)
  }
}

/** Clients come back at different times. Source: docs/wire/ingestion.md 1.3, 8.4. */
function refuseForNow(reply: FastifyReply, random: RandomUint32): void {
  reply.header('retry-after', String(1 + (random() % retryAfterSecondsMax)))
  sendError(reply, captureErrors.transient)
}
