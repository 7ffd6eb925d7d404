// `/s/`, where SDKs post recordings. Reads the request, passes it to the recording service and encodes the outcome; bodies
// that would block the event loop are decoded in a thread.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RandomUint32 } from '#core/capture/event-uuid.ts'
import type { Clock } from '#ports/clock.ts'
import type { ThreadPool } from '#ports/thread-pool.ts'
import type { CaptureService } from '#services/capture/capture.ts'
import type { RecordingOutcome, RecordingService } from '#services/capture/capture-recordings.ts'
import { findClientAddress } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import { captureErrors } from '#wire/capture/capture-errors.ts'
import { parseCaptureQuery, type RawQuery } from '#wire/capture/capture-query.ts'
import { decodeRecordingOnEventLoop, type RecordingInput } from '#wire/recordings/decode-recording.ts'
import {
  createRecordingRefusedError,
  recordingBodyBytesMax,
  recordingErrors,
} from '#wire/recordings/recording-errors.ts'
import type { DecodeJobs } from '#wire/threads/decode-jobs.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'
import { decodeInThread, setRetryAfter } from './decode-in-thread.ts'
import { readHeaderKey, readKeyOutsideBody } from './key-outside-body.ts'

export interface RecordingRouteDeps {
  readonly recording: RecordingService
  readonly keepRefused: CaptureService['keepRefused']
  readonly decodeThreads: ThreadPool<DecodeJobs>
  readonly trustedProxies: TrustedProxies
  readonly clock: Clock
  readonly random: RandomUint32
}

/** Source: docs/wire/ingestion.md 1.6. */
const accepted = '{"status":"Ok"}'
/** Makes posthog-js stop sending recordings for a minute at a time. Source: docs/wire/ingestion.md 1.8. */
const overQuota = '{"status":"Ok","quota_limited":["recordings"]}'

export function recordingRoutes(deps: RecordingRouteDeps): Route[] {
  const post: Route = {
    method: 'POST',
    path: '/s',
    access: 'project_key',
    group: 'capture',
    bodyLimitBytes: recordingBodyBytesMax,
    tooLarge: recordingErrors.bodyTooLarge,
    stalled: captureErrors.bodyReadTimeout,
    busy: captureErrors.transient,
    refused: (request, error) => storeRefusedRequest(deps, request, error),
    handler: (request, reply) => handleRecording(deps, request, reply),
  }
  return [post, { ...post, method: 'GET', takesBodyOfGet: true }]
}

async function handleRecording(deps: RecordingRouteDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { clock, random, decodeThreads, keepRefused, recording } = deps
  const receivedAtMs = clock.nowMs()
  const query = parseCaptureQuery(request.query as RawQuery)
  if (!query.ok) {
    storeRefusedRequest(deps, request, query.error)
    return sendError(reply, query.error)
  }
  const { headers } = request
  const { data, compression, sentAtMs, token, beacon } = query.value
  const userAgent = headers['user-agent'] ?? ''
  const input: RecordingInput = {
    body: request.body as Buffer,
    data,
    compression,
    contentType: headers['content-type'] ?? '',
    contentEncoding: headers['content-encoding'] ?? '',
    querySentAtMs: sentAtMs,
    fallbackToken: token ?? readHeaderKey(request),
  }
  let prepared = decodeRecordingOnEventLoop(input, { receivedAtMs, random, userAgent })
  if (prepared === 'too_much_work') {
    const address = findClientAddress(headers, request.raw.socket.remoteAddress, deps.trustedProxies)
    const toJob = (body: Uint8Array<ArrayBuffer>) => ({ input: { ...input, body }, receivedAtMs, userAgent, address })
    const elsewhere = await decodeInThread(decodeThreads, 'recording', input.body, toJob, reply)
    if (elsewhere === null) return sendRetryableError(reply, random)
    prepared = elsewhere
  }
  if (prepared.kind === 'refused') {
    const { error, token: namedToken, body } = prepared
    keepRefused({ token: namedToken, reason: error.code, field: error.attr ?? '', body, lane: 'replay' }, receivedAtMs)
    return sendError(reply, error)
  }
  sendOutcome(reply, await recording.capture(prepared, receivedAtMs), { beacon, random })
}

/** Stores a refused request, whose body is not read, as a reject, if a key outside the body tells its project. */
function storeRefusedRequest(
  { clock, keepRefused }: RecordingRouteDeps,
  request: FastifyRequest,
  error: WireError,
): void {
  const token = readKeyOutsideBody(request)
  keepRefused({ token, reason: error.code, field: error.attr ?? '', body: '', lane: 'replay' }, clock.nowMs())
}

function sendOutcome(
  reply: FastifyReply,
  outcome: RecordingOutcome,
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
      sendError(reply, createRecordingRefusedError(outcome.refusal))
      break
    case 'unavailable':
      sendRetryableError(reply, random)
  }
}

function sendRetryableError(reply: FastifyReply, random: RandomUint32): void {
  setRetryAfter(reply, random)
  sendError(reply, captureErrors.transient)
}
