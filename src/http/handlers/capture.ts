// The v0 capture endpoints: one handler behind all their names. Reads the request, gives it to the capture service and
// encodes the outcome; bodies that would hold the event loop are decoded in a thread.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { RandomUint32 } from '#core/capture/event-uuid.ts'
import type { ItemVerdicts } from '#core/capture/item-verdicts.ts'
import { readItem } from '#core/capture/prepare-events.ts'
import type { Clock } from '#ports/clock.ts'
import { PortError } from '#ports/port-error.ts'
import type { CaptureService } from '#services/capture/capture.ts'
import type { CaptureOutcome } from '#services/capture/capture-outcome.ts'
import type { RefusedInput } from '#services/capture/keep-rejects.ts'
import { clientAddress } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'
import { captureBodyBytesMax, captureErrors, eventRefused } from '#wire/capture/capture-errors.ts'
import { isYes, parseCaptureQuery, type RawQuery, readableQuery } from '#wire/capture/capture-query.ts'
import {
  encodeVerdicts,
  type RequestVerdicts,
  verdictsGiven,
  verdictsOf,
  withOverQuota,
  withoutPersons,
} from '#wire/capture/capture-verdicts.ts'
import {
  type CaptureInput,
  type DecodedCapture,
  decodeCapture,
  inlineLimits,
  isInlineBody,
  type PreparedCapture,
} from '#wire/capture/decode-capture.ts'
import { type CaptureJob, type DecodePool, movableBytes } from '#wire/threads/decode-thread.ts'
import type { WireError } from '#wire/wire-error.ts'
import { clientGone } from '../bodies/client-gone.ts'
import { type Route, sendError, sendJson } from '../shared/route.ts'
import { keyBesideBody, keyInHeader } from './key-beside-body.ts'

export interface CaptureRouteDependencies {
  readonly service: CaptureService
  /** Runs `wire/threads/decode-thread.ts`. */
  readonly decodeThreads: DecodePool
  readonly trustedProxies: TrustedProxies
  readonly clock: Clock
  readonly random: RandomUint32
  /** `PENNON_REROUTE_OLDER_THAN_DAYS`: older live events take the historical lane; none do when absent. */
  readonly rerouteOlderThanMs?: number | null
}

/** Where events are posted. Source: docs/wire/ingestion.md 1.1, 1.4 step 6, 2.3. */
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

/** Exactly 200 with exactly this: other 2xx are sent again by browsers and by python. Source: docs/wire/ingestion.md 1.6. */
const accepted = '{"status":"Ok"}'
const retryAfterSecondsMax = 30

export function captureRoutes(dependencies: CaptureRouteDependencies): Route[] {
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
        const input = { token: keyBesideBody(request), reason: code, field: '', body: '' }
        dependencies.service.keepRefused(input, dependencies.clock.nowMs())
      },
      handler: (request, reply) => handleCapture(dependencies, capturePath, request, reply),
    }
    return [post, { ...post, method: 'GET', takesBodyOfGet: true }]
  })
}

/** What an answer takes: kept while events wait for the disk, when the request that was parsed is not needed any more. */
interface Exchange {
  readonly reply: FastifyReply
  readonly beacon: boolean
  readonly random: RandomUint32
  /** Where the request asked for them. */
  readonly verdicts: RequestVerdicts | null
}

function handleCapture(
  dependencies: CaptureRouteDependencies,
  capturePath: CapturePath,
  request: FastifyRequest,
  reply: FastifyReply,
): void | Promise<void> {
  const { service, clock, random } = dependencies
  const receivedAtMs = clock.nowMs()
  const query = parseCaptureQuery(request.query as RawQuery)
  const { data, compression, sentAtMs, token, verbose, beacon } = query.ok
    ? query.value
    : readableQuery(request.query as RawQuery)
  const { headers } = request
  const ip = clientAddress(headers, request.raw.socket.remoteAddress, dependencies.trustedProxies)
  const input: CaptureInput = {
    body: request.body as Buffer,
    data,
    compression,
    contentType: headers['content-type'] ?? '',
    contentEncoding: headers['content-encoding'] ?? '',
    legacyPath: capturePath.legacy,
    engage: capturePath.engage,
    querySentAtMs: sentAtMs,
    fallbackToken: token ?? keyInHeader(request),
    ip,
    verbose: verbose || isYes(textOfHeader(headers['x-pennon-verbose']) ?? ''),
  }
  if (!query.ok) {
    service.keepRefused(refusedUnread(input, query.error), receivedAtMs)
    return sendError(reply, query.error)
  }
  const exchange: Exchange = { reply, beacon, random, verdicts: null }
  const { rerouteOlderThanMs = null } = dependencies
  const decoded = decodeInline(input)
  switch (decoded.kind) {
    case 'events': {
      const received = { receivedAtMs, ip, random, rerouteOlderThanMs }
      const { events, itemised } = decoded.request
      const verdicts = itemised === undefined ? null : verdictsOf(events, itemised)
      const stored = service.capture(decoded.request, received, decoded.body)
      return answerWhenStored(stored, verdicts === null ? exchange : { ...exchange, verdicts })
    }
    case 'too_much_work':
      return decodeElsewhere(dependencies, { input, receivedAtMs, ip }, exchange)
    default:
      return answerPrepared(dependencies, decoded, receivedAtMs, exchange)
  }
}

async function decodeElsewhere(
  dependencies: CaptureRouteDependencies,
  { input, receivedAtMs, ip }: Pick<CaptureJob, 'receivedAtMs' | 'ip'> & { readonly input: CaptureInput },
  exchange: Exchange,
): Promise<void> {
  const body = movableBytes(input.body)
  const { rerouteOlderThanMs = null } = dependencies
  const job: CaptureJob = { kind: 'capture', input: { ...input, body }, receivedAtMs, ip, rerouteOlderThanMs }
  let prepared: PreparedCapture
  try {
    prepared = await dependencies.decodeThreads.run(job, body.length, [body.buffer], clientGone(exchange.reply))
  } catch (error) {
    if (!(error instanceof PortError)) throw error
    return refuseForNow(exchange)
  }
  await answerPrepared(dependencies, prepared, receivedAtMs, exchange)
}

function answerPrepared(
  { service }: CaptureRouteDependencies,
  prepared: PreparedCapture,
  receivedAtMs: number,
  exchange: Exchange,
): void | Promise<void> {
  switch (prepared.kind) {
    case 'prepared': {
      const stored = service.capturePrepared(prepared, receivedAtMs, prepared.body)
      const { verdicts } = prepared
      return answerWhenStored(
        stored,
        verdicts === undefined ? exchange : { ...exchange, verdicts: verdictsGiven(verdicts) },
      )
    }
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

async function answerWhenStored(stored: Promise<CaptureOutcome>, exchange: Exchange): Promise<void> {
  const outcome = await stored
  switch (outcome.kind) {
    case 'accepted':
      if (exchange.verdicts !== null) sendVerdicts(verdictsAfter(exchange.verdicts, outcome), exchange)
      else if (exchange.beacon && !outcome.quotaLeftNothing) exchange.reply.code(204).send()
      else sendJson(exchange.reply, 200, accepted)
      break
    case 'over_quota':
    case 'discarded':
      if (exchange.verdicts !== null) sendVerdicts(verdictsAfter(exchange.verdicts, outcome), exchange)
      else sendJson(exchange.reply, 200, accepted)
      break
    case 'refused':
      sendError(exchange.reply, eventRefused(outcome.refusal, outcome.field))
      break
    case 'unknown_project':
      sendError(exchange.reply, captureErrors.unknownApiKey)
      break
    case 'unavailable':
      refuseForNow(exchange, outcome.reason)
  }
}

function sendVerdicts(verdicts: ItemVerdicts, { reply }: Exchange): void {
  const { status, body } = encodeVerdicts(verdicts)
  sendJson(reply, status, body)
}

function verdictsAfter(given: RequestVerdicts, outcome: CaptureOutcome): ItemVerdicts {
  if (outcome.kind === 'discarded') return given.allDropped('non_historical_import_drop')
  if (outcome.kind !== 'accepted' || outcome.isKeyUnknown === true) return given.allDropped('unknown_api_key')
  const verdicts = withOverQuota(given.judged(), outcome.overQuota)
  return outcome.hot === undefined ? verdicts : withoutPersons(verdicts, outcome.hot)
}

/** Clients come back at different times. Source: docs/wire/ingestion.md 1.3, 8.4. */
function refuseForNow({ reply, random }: Exchange, reason?: string): void {
  reply.header('retry-after', String(1 + (random() % retryAfterSecondsMax)))
  const { transient } = captureErrors
  sendError(reply, reason === undefined ? transient : { ...transient, detail: `${transient.detail}: ${reason}` })
}

function decodeInline(input: CaptureInput): DecodedCapture {
  if (!isInlineBody(input)) return { kind: 'too_much_work' }
  return decodeCapture(input, inlineLimits)
}

/** What the reject store gets of a request whose query is refused: its body says whose it is, if it is quickly read. */
function refusedUnread(input: CaptureInput, { code, attr }: WireError): RefusedInput {
  const of = { reason: code, field: attr ?? '' }
  const decoded = decodeInline({ ...input, verbose: false })
  switch (decoded.kind) {
    case 'events': {
      const { token, historicalMigration, events, performanceEventCount = 0 } = decoded.request
      const eventCount = events.length + performanceEventCount
      const item = eventCount === 1 ? { item: readItem(events[0]!) } : {}
      return { ...of, token, historicalMigration, eventCount, ...item, body: decoded.body() }
    }
    case 'no_event_left':
      return { ...of, token: decoded.token, eventCount: decoded.eventCount, body: '' }
    case 'too_much_work':
      return { ...of, token: input.fallbackToken, body: '' }
    case 'refused': {
      const { error: _, ...refused } = decoded
      return { ...refused, ...of }
    }
  }
}

function textOfHeader(header: string | string[] | undefined): string | null {
  return (typeof header === 'string' ? header : header?.[0]) || null
}
