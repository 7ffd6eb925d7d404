// Turns the bytes of a v0 capture request into the capture service's input. Pure, so that it can run on the event loop
// for small bodies, and in a decode thread for bodies that would hold the loop.

import type { IncomingRequest } from '#core/capture/incoming-event.ts'
import { readRequestRefusal } from '#core/capture/outcome-table.ts'
import { type GetSettleVisitor, type PreparedRequest, prepareEvents } from '#core/capture/prepare-events.ts'
import { toStoredRejectBody } from '#core/capture/reject-body.ts'
import type { RejectedBody } from '#core/events/captured-event.ts'
import { runAllSteps } from '#core/maybe-steps.ts'
import { type CaptureBody, readCaptureBody } from './capture-body.ts'
import { captureDecodedBytesMax, captureErrors, captureItemCountMax } from './capture-errors.ts'
import { type NoEventLeft, parseCaptureRequest } from './capture-request.ts'
import { type BatchImportReport, readImportReport } from './import-report.ts'
import { structuredIdBytesMax } from './incoming-item.ts'
import { parseItemisedRequest } from './itemised-request.ts'
import type { CaptureRefusal } from './open-request.ts'

export interface CaptureInput extends CaptureBody {
  /** On `/engage` an event needs no name. */
  readonly engage: boolean
  readonly querySentAtMs: number | null
  readonly fallbackToken: string | null
  /** Whether items are judged one by one (`?verbose=1`). */
  readonly verbose: boolean
  /** The client's address, '' when unknown. */
  readonly ip: string
}

/** A request that was refused before its events were judged. */
export interface RefusedCapture extends CaptureRefusal {
  readonly kind: 'refused'
  /** The body for the reject store, decoded and truncated; '' when it could not be decoded or no token is known. */
  readonly body: RejectedBody
}

export type DecodedCapture =
  | {
      readonly kind: 'events'
      readonly request: IncomingRequest
      /** Makes the body for the reject store. */
      readonly body: () => RejectedBody
    }
  | NoEventLeft
  | { readonly kind: 'too_much_work' }
  | RefusedCapture

/** Bounds of one request, which depend on where it is decoded. */
export interface DecodeLimits {
  readonly decodedBytesMax: number
  readonly itemCountMax: number
  readonly parsedBytesMax: number
  readonly structuredIdBytesMax: number
}

/**
 * The work that the event loop does in 2 ms. Any client can send requests just below these bounds on many connections, and
 * all that arrive in one turn of the loop are decoded in it. SDKs send up to 100 events at a time, of a kilobyte each. A
 * text is parsed only if it has no outline (`request-outline.ts`); otherwise its properties are only walked over. Source:
 * ours.
 */
export const inlineLimits: DecodeLimits = {
  decodedBytesMax: 256 * 1024,
  itemCountMax: 256,
  parsedBytesMax: 64 * 1024,
  // Low, because hardly any client sends an id that is a list or an object.
  structuredIdBytesMax: 8 * 1024,
}
/** Lower than for other requests, because when events are judged one by one, their properties are parsed too. */
const inlineItemisedLimits: DecodeLimits = { ...inlineLimits, decodedBytesMax: inlineLimits.parsedBytesMax }
/** The most bytes, as sent, of a body that is not plain JSON. */
const inlineCompressedBytesMax = 64 * 1024
const threadLimits: DecodeLimits = {
  decodedBytesMax: captureDecodedBytesMax,
  itemCountMax: captureItemCountMax,
  parsedBytesMax: captureDecodedBytesMax,
  structuredIdBytesMax,
}

/** Decodes on the event loop; `too_much_work` for a body that would hold it. */
export function decodeCaptureOnEventLoop(input: CaptureInput): DecodedCapture {
  const limits = input.verbose ? inlineItemisedLimits : inlineLimits
  return isInlineBody(input, limits) ? decodeCapture(input, limits) : { kind: 'too_much_work' }
}

/** Judges by the size as sent; a body that turns out larger when decoded is `too_much_work` later. */
function isInlineBody({ body, compression, contentEncoding }: CaptureInput, limits: DecodeLimits): boolean {
  // Only the contents of base64 and forms show whether they are compressed.
  const isPlain = compression === '' && contentEncoding === '' && startsAsJson(body)
  return body.length <= (isPlain ? limits.decodedBytesMax : inlineCompressedBytesMax)
}

function startsAsJson(body: Buffer): boolean {
  return body[0] === openBrace || body[0] === openBracket
}

const openBracket = 0x5b
const openBrace = 0x7b

function decodeCapture(input: CaptureInput, limits: DecodeLimits): DecodedCapture {
  const payload = readCaptureBody(input, limits.decodedBytesMax)
  if (!payload.ok) {
    if (payload.error === 'inflated_too_large') return { kind: 'too_much_work' }
    return { kind: 'refused', error: payload.error, token: input.fallbackToken, body: '' }
  }
  const parse = input.verbose ? parseItemisedRequest : parseCaptureRequest
  const parsed = parse(payload.value, {
    engage: input.engage,
    querySentAtMs: input.querySentAtMs,
    fallbackToken: input.fallbackToken,
    itemCountMax: limits.itemCountMax,
    parsedBytesMax: limits.parsedBytesMax,
    structuredIdBytesMax: limits.structuredIdBytesMax,
  })
  if (!parsed.ok) {
    const { token } = parsed.error
    return {
      kind: 'refused',
      ...parsed.error,
      body: token === null ? '' : createRejectedBody(payload.value.text, input),
    }
  }
  if (parsed.value === 'too_much_work') return { kind: 'too_much_work' }
  if ('kind' in parsed.value) return parsed.value
  return { kind: 'events', request: parsed.value, body: () => createRejectedBody(payload.value.text, input) }
}

function createRejectedBody(sent: string, { engage, ip, querySentAtMs: sentAtMs }: CaptureInput): RejectedBody {
  return toStoredRejectBody(sent, {
    kind: 'request',
    protocol: 'v0',
    engage,
    ip,
    sentAtMs,
    personProcessingForcedOff: false,
  })
}

/** A request whose events are encoded, with project 0 for now. The event loop and threads produce the same result. */
export type PreparedCapture =
  | (PreparedRequest & {
      readonly kind: 'prepared'
      /** The import report, made only if the request asked for it, and only in a thread. */
      readonly report?: BatchImportReport
    })
  | NoEventLeft
  | RefusedCapture

type Received = Parameters<typeof prepareEvents>[1]

/** For the event loop: `too_much_work` for a body that would hold it and needs a thread. */
export function prepareCaptureOnEventLoop(
  input: CaptureInput,
  received: Received,
  visitorsOf?: GetSettleVisitor,
): PreparedCapture | { readonly kind: 'too_much_work' } {
  return prepareDecoded(decodeCaptureOnEventLoop(input), received, visitorsOf)
}

/**
 * For a thread: reads bodies up to the protocol's limits. @param reportRecentFromMs the time from which on events count as
 * recent in an import report, epoch ms.
 */
export function decodeAndPrepareCapture(
  input: CaptureInput,
  received: Received,
  reportRecentFromMs?: number,
): PreparedCapture {
  const prepared = prepareDecoded(decodeCapture(input, threadLimits), received)
  if (prepared.kind === 'prepared' && reportRecentFromMs !== undefined && readRequestRefusal(prepared.table) === null)
    return { ...prepared, report: runAllSteps(readImportReport(prepared.table, reportRecentFromMs)) }
  if (prepared.kind !== 'too_much_work') return prepared
  return { kind: 'refused', error: captureErrors.decodedTooLarge, token: input.fallbackToken, body: '' }
}

function prepareDecoded(
  decoded: DecodedCapture,
  received: Received,
  visitorsOf?: GetSettleVisitor,
): PreparedCapture | { readonly kind: 'too_much_work' } {
  if (decoded.kind !== 'events') return decoded
  const { token, historicalMigration } = decoded.request
  const table = prepareEvents(decoded.request, received, visitorsOf)
  const body = readRequestRefusal(table) === null ? '' : decoded.body()
  return { kind: 'prepared', protocol: 'v0', token, historicalMigration, table, body }
}
