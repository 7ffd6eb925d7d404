// The whole way from the bytes of a v0 capture request to what the capture service takes. Pure, so that it runs on the
// event loop for small bodies and in a decode thread (`decode-thread.ts`) for those that would hold it.

import type { IncomingRequest } from '#core/capture/incoming-event.ts'
import type { ItemVerdicts } from '#core/capture/item-verdicts.ts'
import {
  type PreparedEvents,
  prepareEvents,
  type ReceivedRequest,
  type RefusedRequest,
} from '#core/capture/prepare-events.ts'
import { keptBody } from '#core/capture/reject-body.ts'
import type { RejectedBody } from '#core/events/captured-event.ts'
import { type CaptureBody, readCaptureBody } from './capture-body.ts'
import { captureDecodedBytesMax, captureErrors, captureItemCountMax, captureValueCountMax } from './capture-errors.ts'
import { type NoEventLeft, parseCaptureRequest } from './capture-request.ts'
import { structuredIdBytesMax } from './incoming-item.ts'
import { parseItemisedRequest } from './itemised-request.ts'
import type { CaptureRefusal } from './open-request.ts'

export interface CaptureInput extends CaptureBody {
  /** On `/engage` an event needs no name. */
  readonly engage: boolean
  readonly querySentAtMs: number | null
  readonly fallbackToken: string | null
  /** Items are judged one by one (`?verbose=1`). */
  readonly verbose: boolean
  /** Address of the connection, '' when unknown. */
  readonly ip: string
}

/** A request that was refused before its events were looked at. */
export interface RefusedCapture extends CaptureRefusal {
  readonly kind: 'refused'
  /** What was sent, decoded where that worked, cut for the reject store; '' without a token. */
  readonly body: RejectedBody
}

export type DecodedCapture =
  | { readonly kind: 'events'; readonly request: IncomingRequest; readonly body: () => RejectedBody }
  | NoEventLeft
  | { readonly kind: 'too_much_work' }
  | RefusedCapture

/** What one request may cost where it is decoded. */
export interface DecodeLimits {
  readonly decodedBytesMax: number
  readonly itemCountMax: number
  readonly valueCountMax: number
  readonly structuredIdBytesMax: number
}

/** What the event loop reads itself of ids that are lists or objects; hardly any client sends one. Source: ours. */
export const inlineStructuredIdBytesMax = 8 * 1024

/** The event loop takes what it can do in a few milliseconds. */
export const inlineLimits: DecodeLimits = {
  decodedBytesMax: 1024 * 1024,
  itemCountMax: 2_000,
  valueCountMax: 64 * 1024,
  structuredIdBytesMax: inlineStructuredIdBytesMax,
}
export const inlineCompressedBytesMax = 256 * 1024
const threadLimits: DecodeLimits = {
  decodedBytesMax: captureDecodedBytesMax,
  itemCountMax: captureItemCountMax,
  valueCountMax: captureValueCountMax,
  structuredIdBytesMax,
}

/** Whether the event loop may try at all; a body that turns out larger answers `too_much_work` there. */
export function isInlineBody({ body, compression, contentEncoding }: CaptureInput): boolean {
  // Base64 and forms say inside whether they are compressed.
  const isPlain = compression === '' && contentEncoding === '' && startsAsJson(body)
  return body.length <= (isPlain ? inlineLimits.decodedBytesMax : inlineCompressedBytesMax)
}

function startsAsJson(body: Buffer): boolean {
  return body[0] === openBrace || body[0] === openBracket
}

const openBracket = 0x5b
const openBrace = 0x7b

export function decodeCapture(input: CaptureInput, limits: DecodeLimits): DecodedCapture {
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
    valueCountMax: limits.valueCountMax,
    structuredIdBytesMax: limits.structuredIdBytesMax,
  })
  if (!parsed.ok) {
    const { token } = parsed.error
    return { kind: 'refused', ...parsed.error, body: token === null ? '' : rejectedBody(payload.value.text, input) }
  }
  if (parsed.value === 'too_much_work') return { kind: 'too_much_work' }
  if ('kind' in parsed.value) return parsed.value
  return { kind: 'events', request: parsed.value, body: () => rejectedBody(payload.value.text, input) }
}

function rejectedBody(sent: string, { engage, ip, querySentAtMs: sentAtMs }: CaptureInput): RejectedBody {
  return keptBody(sent, { kind: 'request', protocol: 'v0', engage, ip, sentAtMs, personProcessingForcedOff: false })
}

/** What a decode thread gives back: events are encoded, their project is left open (0). */
export type PreparedCapture =
  | {
      readonly kind: 'prepared'
      readonly token: string
      readonly historicalMigration: boolean
      readonly eventCount: number
      readonly performanceEventCount?: number
      readonly outcome: PreparedEvents | RefusedRequest
      /** What the reject store gets of a refused request; '' for any other. */
      readonly body: RejectedBody
      /** Where they were asked for. */
      readonly verdicts?: ItemVerdicts
    }
  | NoEventLeft
  | RefusedCapture

/** Decodes, normalises and encodes in one go, up to the limits of the wire. */
export function decodeAndPrepare(input: CaptureInput, received: ReceivedRequest): PreparedCapture {
  const decoded = decodeCapture(input, threadLimits)
  if (decoded.kind === 'too_much_work') {
    return { kind: 'refused', error: captureErrors.decodedTooLarge, token: input.fallbackToken, body: '' }
  }
  if (decoded.kind !== 'events') return decoded
  const { request } = decoded
  const { token, historicalMigration } = request
  const outcome = prepareEvents(request, 0, received)
  const body = 'refusal' in outcome ? decoded.body() : ''
  const verdicts = request.itemised?.verdicts.finish()
  const eventCount = request.events.length
  const { performanceEventCount = 0 } = request
  const prepared = {
    kind: 'prepared',
    token,
    historicalMigration,
    eventCount,
    performanceEventCount,
    outcome,
    body,
  } as const
  return verdicts === undefined ? prepared : { ...prepared, verdicts }
}
