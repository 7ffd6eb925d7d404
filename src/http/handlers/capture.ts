// The v0 capture endpoints: one handler for all their paths. It reads the request, passes it to the capture service and
// encodes the outcome; bodies that would block the event loop are decoded in a thread.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RandomUint32 } from '#core/capture/event-uuid.ts'
import { toRefusedItem } from '#core/capture/incoming-event.ts'
import { findLeftOutReason } from '#core/capture/outcome-table.ts'
import type { Clock } from '#ports/clock.ts'
import { PortError } from '#ports/port-error.ts'
import type { ThreadPool } from '#ports/thread-pool.ts'
import type { CaptureService } from '#services/capture/capture.ts'
import type { AnswerReading, CaptureOutcome } from '#services/capture/capture-outcome.ts'
import type { RefusedInput } from '#services/capture/record-rejects.ts'
import { runInSlices } from '#services/shared/run-in-slices.ts'
import { findClientAddress } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import { captureBodyBytesMax, captureErrors, createEventRefusedError } from '#wire/capture/capture-errors.ts'
import { isYes, parseCaptureQuery, type RawQuery, readTextParameters } from '#wire/capture/capture-query.ts'
import { encodeVerdicts, type VerboseAnswer } from '#wire/capture/capture-verdicts.ts'
import {
  type CaptureInput,
  decodeCaptureOnEventLoop,
  type PreparedCapture,
  prepareCaptureOnEventLoop,
} from '#wire/capture/decode-capture.ts'
import { type ImportRequest, parseImportRequest } from '#wire/capture/import-request.ts'
import type { CaptureJob, DecodeJobs } from '#wire/threads/decode-jobs.ts'
import type { WireError } from '#wire/wire-error.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'
import { decodeInThread, setRetryAfter } from './decode-in-thread.ts'
import {
  computeRecentStartMs,
  createImportReportReader,
  createStoredEventCounter,
  encodeReportOutcome,
  findJobRefusal,
  findNamedJob,
  type ImportRequestDeps,
  limitImportPace,
  limitPreparedImportPace,
  type NamedJob,
} from './import-request.ts'
import { readHeaderKey, readKeyOutsideBody } from './key-outside-body.ts'

export interface CaptureRouteDeps {
  readonly service: CaptureService
  readonly decodeThreads: ThreadPool<DecodeJobs>
  readonly trustedProxies: TrustedProxies
  readonly clock: Clock
  readonly random: RandomUint32
  /** `PENNON_REROUTE_OLDER_THAN_DAYS`: older live events take the historical lane; none do when absent. */
  readonly rerouteOlderThanMs?: number | null
  /** Absent in tests without imports; the headers of imports are then ignored. */
  readonly imports?: ImportRequestDeps
}

/** The paths that take events. Source: docs/wire/ingestion.md 1.1, 1.4 step 6, 2.3. */
const capturePaths = [
  { path: '/capture', legacy: true, engage: false },
  { path: '/batch', legacy: false, engage: false },
  { path: '/e', legacy: true, engage: false },
  { path: '/i/v0/e', legacy: false, engage: false },
  { path: '/track', legacy: true, engage: false },
  { path: '/engage', legacy: true, engage: true },
  { path: '/i/v0/ai/batch', legacy: false, engage: false },
] as const
type CapturePath = (typeof capturePaths)[number]

/** Sent with exactly 200: after any other 2xx, browsers and python retry. Source: docs/wire/ingestion.md 1.6. */
const accepted = '{"status":"Ok"}'

export function captureRoutes(deps: CaptureRouteDeps): Route[] {
  return capturePaths.flatMap(capturePath => {
    const post: Route = {
      method: 'POST',
      path: capturePath.path,
      access: 'project_key',
      group: 'capture',
      bodyLimitBytes: captureBodyBytesMax,
      tooLarge: captureErrors.bodyTooLarge,
      stalled: captureErrors.bodyReadTimeout,
      busy: captureErrors.transient,
      refused: (request, { code }) => {
        const input = { token: readKeyOutsideBody(request), reason: code, field: '', body: '' }
        deps.service.keepRefused(input, deps.clock.nowMs())
      },
      handler: (request, reply) => handleCapture(deps, capturePath, request, reply),
    }
    return [post, { ...post, method: 'GET', takesBodyOfGet: true }]
  })
}

/** Everything that is needed to answer, kept instead of the parsed request while the events wait for the disk. */
interface Exchange {
  readonly reply: FastifyReply
  readonly random: RandomUint32
  readonly read: AnswerReading<VerboseAnswer>
  /** The request's import headers; null for nearly every request. */
  readonly import: ImportRequest | null
  /** The job that `import` names. */
  readonly job: NamedJob | null
}

const okAnswer: VerboseAnswer = { status: 200, body: accepted }
const emptyAnswer: VerboseAnswer = { status: 204, body: '' }

const readVerdicts: AnswerReading<VerboseAnswer> = table => runInSlices(encodeVerdicts(table))
const readOk: AnswerReading<VerboseAnswer> = () => okAnswer
/**
 * A beacon gets the full answer when a quota or import-only mode dropped every event. Source: docs/wire/ingestion.md
 * 1.6.
 */
const readBeacon: AnswerReading<VerboseAnswer> = table => (findLeftOutReason(table) === null ? emptyAnswer : okAnswer)

function handleCapture(
  deps: CaptureRouteDeps,
  capturePath: CapturePath,
  request: FastifyRequest,
  reply: FastifyReply,
): void | Promise<void> {
  const { service, clock, random } = deps
  const receivedAtMs = clock.nowMs()
  const query = parseCaptureQuery(request.query as RawQuery)
  const { data, compression, sentAtMs, token, verbose, beacon } = query.ok
    ? query.value
    : readTextParameters(request.query as RawQuery)
  const { headers } = request
  const imports = deps.imports === undefined ? null : parseImportRequest(headers)
  if (imports !== null && !imports.ok) return sendError(reply, imports.error)
  const importRequest = imports?.value ?? null
  const ip = findClientAddress(headers, request.raw.socket.remoteAddress, deps.trustedProxies)
  const input: CaptureInput = {
    body: request.body as Buffer,
    data,
    compression,
    contentType: headers['content-type'] ?? '',
    contentEncoding: headers['content-encoding'] ?? '',
    legacyPath: capturePath.legacy,
    engage: capturePath.engage,
    querySentAtMs: sentAtMs,
    fallbackToken: token ?? readHeaderKey(request),
    ip,
    verbose:
      verbose || importRequest?.wantsReport === true || isYes(readFirstHeader(headers['x-pennon-verbose']) ?? ''),
  }
  if (!query.ok) {
    service.keepRefused(toRefusedInput(input, query.error), receivedAtMs)
    return sendError(reply, query.error)
  }
  const exchange: Exchange = {
    reply,
    random,
    read: input.verbose ? readVerdicts : beacon ? readBeacon : readOk,
    import: importRequest,
    job: null,
  }
  const publicJobId = importRequest?.publicJobId ?? null
  return publicJobId === null
    ? prepareAndAnswer(deps, input, { receivedAtMs, ip }, exchange)
    : answerForJob(deps, publicJobId, input, { receivedAtMs, ip }, exchange)
}

interface Received {
  readonly receivedAtMs: number
  readonly ip: string
}

async function answerForJob(
  deps: CaptureRouteDeps,
  publicJobId: number,
  input: CaptureInput,
  received: Received,
  exchange: Exchange,
): Promise<void> {
  try {
    const job = await findNamedJob(deps.imports!, exchange.reply, publicJobId, received.ip)
    if (!job.ok) return sendError(exchange.reply, job.error)
    const tooFast = limitImportPace(deps.imports!, exchange.reply, job.value.projectId)
    if (tooFast !== null) return sendError(exchange.reply, tooFast)
    return await prepareAndAnswer(deps, input, received, { ...exchange, job: job.value })
  } catch (cause) {
    if (!(cause instanceof PortError)) throw cause
    return sendRetryableError(exchange)
  }
}

function prepareAndAnswer(
  deps: CaptureRouteDeps,
  input: CaptureInput,
  { receivedAtMs, ip }: Received,
  exchange: Exchange,
): void | Promise<void> {
  const { random } = exchange
  const { rerouteOlderThanMs = null } = deps
  const ofJob = exchange.job === null ? null : { importJobId: exchange.job.id }
  const withReport =
    exchange.import?.wantsReport === true ? { reportRecentFromMs: computeRecentStartMs(receivedAtMs) } : null
  const prepared = prepareCaptureOnEventLoop(
    input,
    { receivedAtMs, ip, random, rerouteOlderThanMs, ...ofJob },
    deps.service.visitorsOf,
  )
  return prepared.kind === 'too_much_work'
    ? answerFromThread(deps, { input, receivedAtMs, ip, rerouteOlderThanMs, ...ofJob, ...withReport }, exchange)
    : answerPrepared(deps, prepared, receivedAtMs, exchange)
}

async function answerFromThread(
  deps: CaptureRouteDeps,
  { input, ...received }: Omit<CaptureJob, 'input'> & { readonly input: CaptureInput },
  exchange: Exchange,
): Promise<void> {
  const toJob = (body: Uint8Array<ArrayBuffer>): CaptureJob => ({ input: { ...input, body }, ...received })
  const prepared = await decodeInThread(deps.decodeThreads, 'capture', input.body, toJob, exchange.reply)
  if (prepared === null) return sendRetryableError(exchange)
  return answerPrepared(deps, prepared, received.receivedAtMs, exchange)
}

function answerPrepared(
  deps: CaptureRouteDeps,
  prepared: PreparedCapture,
  receivedAtMs: number,
  exchange: Exchange,
): void | Promise<void> {
  const { service } = deps
  switch (prepared.kind) {
    case 'prepared':
      if (exchange.import !== null) return answerImport(deps, exchange.import, prepared, receivedAtMs, exchange)
      return answerWhenStored(service.capture(prepared, receivedAtMs, exchange.read), exchange)
    case 'no_event_left':
      service.countPerformanceEvents(prepared.token, prepared.eventCount)
      return sendJson(exchange.reply, 200, accepted)
    case 'refused': {
      const { error, ...refused } = prepared
      service.keepRefused({ ...refused, reason: error.code, field: error.attr ?? '' }, receivedAtMs)
      return sendError(exchange.reply, error)
    }
  }
}

async function answerImport(
  { service, imports }: CaptureRouteDeps,
  request: ImportRequest,
  prepared: Extract<PreparedCapture, { readonly kind: 'prepared' }>,
  receivedAtMs: number,
  exchange: Exchange,
): Promise<void> {
  try {
    const error =
      exchange.job === null
        ? limitPreparedImportPace(imports!, exchange.reply, prepared)
        : await findJobRefusal(imports!, exchange.reply, exchange.job, prepared)
    if (error !== null) return sendError(exchange.reply, error)
  } catch (cause) {
    if (!(cause instanceof PortError)) throw cause
    return sendRetryableError(exchange)
  }
  if (!request.wantsReport) return answerWhenStored(service.capture(prepared, receivedAtMs, exchange.read), exchange)
  const counting = createStoredEventCounter(imports!, prepared)
  const stored = service.capture(
    prepared,
    receivedAtMs,
    createImportReportReader(imports!, prepared, receivedAtMs),
    counting,
  )
  return answerWhenStored(stored.then(encodeReportOutcome), exchange)
}

async function answerWhenStored(
  stored: Promise<CaptureOutcome<VerboseAnswer>>,
  { reply, random }: Exchange,
): Promise<void> {
  const outcome = await stored
  switch (outcome.kind) {
    case 'stored': {
      const { status, body } = outcome.answer
      if (status === 204) reply.code(status).send()
      else sendJson(reply, status, body)
      break
    }
    case 'refused':
      sendError(reply, createEventRefusedError(outcome.refusal, outcome.field))
      break
    case 'unknown_project':
      sendError(reply, captureErrors.unknownApiKey)
      break
    case 'unavailable':
      sendRetryableError({ reply, random }, outcome.reason)
  }
}

function sendRetryableError({ reply, random }: Pick<Exchange, 'reply' | 'random'>, reason?: string): void {
  setRetryAfter(reply, random)
  const { transient } = captureErrors
  sendError(reply, reason === undefined ? transient : { ...transient, detail: `${transient.detail}: ${reason}` })
}

/**
 * What the reject store keeps of a request whose query string is refused. If the body is cheap to read, the project is
 * taken from the body.
 */
function toRefusedInput(input: CaptureInput, { code, attr }: WireError): RefusedInput {
  const refusal = { reason: code, field: attr ?? '' }
  const decoded = decodeCaptureOnEventLoop({ ...input, verbose: false })
  switch (decoded.kind) {
    case 'events': {
      const { token, historicalMigration, items } = decoded.request
      const [only] = items.length === 1 ? items : []
      const item = only?.kind === 'event' && { item: toRefusedItem(only) }
      return { ...refusal, token, historicalMigration, eventCount: items.length, ...item, body: decoded.body() }
    }
    case 'no_event_left':
      return { ...refusal, token: decoded.token, eventCount: decoded.eventCount, body: '' }
    case 'too_much_work':
      return { ...refusal, token: input.fallbackToken, body: '' }
    case 'refused': {
      const { error: _, ...refused } = decoded
      return { ...refused, ...refusal }
    }
  }
}

function readFirstHeader(header: string | string[] | undefined): string | null {
  return (typeof header === 'string' ? header : header?.[0]) || null
}
