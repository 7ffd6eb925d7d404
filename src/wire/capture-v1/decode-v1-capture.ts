// The whole way from the bytes of a v1 capture request to what the capture service takes. Pure, so that it runs on the
// event loop for small bodies and in a decode thread (`decode-thread.ts`) for those that would hold it.

import { isAscii, isUtf8 } from 'node:buffer'
import { type PreparedV1Events, prepareV1Events, type ReceivedV1Request } from '#core/capture/prepare-v1-events.ts'
import { keptBody } from '#core/capture/reject-body.ts'
import type { RejectedBody } from '#core/events/captured-event.ts'
import { err, ok, type Result } from '#core/result.ts'
import { expandedBytesMax, gunzip, inflateEncoding } from '../bytes/inflate.ts'
import { captureItemCountMax, captureValueCountMax } from '../capture/capture-errors.ts'
import { type DecodeLimits, inlineCompressedBytesMax, inlineLimits } from '../capture/decode-capture.ts'
import type { WireError } from '../wire-error.ts'
import { unparsableBody, v1CaptureErrors, v1DecodedBytesMax } from './v1-capture-errors.ts'
import type { V1Headers } from './v1-capture-headers.ts'
import { parseV1Batch, type V1BatchLimits, type V1BatchRefusal, type V1Payload } from './v1-capture-request.ts'

export interface V1CaptureInput {
  readonly headers: V1Headers
  readonly body: Buffer
  /** The path takes AI events and nothing else. */
  readonly aiOnly: boolean
}

/** What comes of a body: events are encoded, their project is left open (0). */
export type PreparedV1Capture =
  | { readonly kind: 'prepared'; readonly historicalMigration: boolean; readonly outcome: PreparedV1Events }
  | ({
      readonly kind: 'refused'
      /** What was sent, decoded where that worked, cut for the reject store. */
      readonly body: RejectedBody
    } & V1BatchRefusal)

const threadLimits: V1BatchLimits & Pick<DecodeLimits, 'decodedBytesMax'> = {
  decodedBytesMax: v1DecodedBytesMax,
  itemCountMax: captureItemCountMax,
  valueCountMax: captureValueCountMax,
}

/** On the event loop: what would hold it is left to a thread. */
export function prepareV1Inline(
  input: V1CaptureInput,
  received: ReceivedV1Request,
): PreparedV1Capture | { readonly kind: 'too_much_work' } {
  const isPlain = input.headers.encoding === ''
  const bytesMax = isPlain ? inlineLimits.decodedBytesMax : inlineCompressedBytesMax
  return input.body.length > bytesMax ? tooMuchWork : prepare(input, received, inlineLimits)
}

/** In a thread: up to the limits of the wire. */
export function prepareV1Capture(input: V1CaptureInput, received: ReceivedV1Request): PreparedV1Capture {
  const prepared = prepare(input, received, threadLimits)
  return prepared.kind === 'too_much_work' ? unread(v1CaptureErrors.decodedTooLarge) : prepared
}

const tooMuchWork = { kind: 'too_much_work' } as const

function prepare(input: V1CaptureInput, received: ReceivedV1Request, limits: typeof threadLimits) {
  const { headers, body, aiOnly } = input
  if (body.length === 0) return unread(v1CaptureErrors.emptyBody)
  const payload = readPayload(input, limits.decodedBytesMax)
  if (!payload.ok) return payload.error === 'inflated_too_large' ? tooMuchWork : unread(payload.error)
  const batch = parseV1Batch(payload.value, limits)
  const { token, sentAtMs, sdk } = headers
  if (!batch.ok) {
    const body = keptBody(payload.value.text, {
      kind: 'request',
      protocol: 'v1',
      engage: false,
      ip: received.ip,
      sentAtMs,
      personProcessingForcedOff: false,
      v1: { sdk, aiOnly },
    })
    return { kind: 'refused', ...batch.error, body } as const
  }
  if (batch.value === 'too_much_work') return tooMuchWork
  const outcome = prepareV1Events({ ...batch.value, token, sentAtMs, sdk, aiOnly }, 0, received)
  return { kind: 'prepared', historicalMigration: batch.value.historicalMigration, outcome } as const
}

function readPayload(
  { headers, body }: V1CaptureInput,
  outputBytesMax: number,
): Result<V1Payload, WireError | 'inflated_too_large'> {
  let bytes = body
  const { encoding } = headers
  if (encoding !== '') {
    const bytesMax = expandedBytesMax(body.length, outputBytesMax, 'stream')
    const inflated = encoding === 'gzip' ? gunzip(body, bytesMax) : inflateEncoding(encoding, body, bytesMax)
    if (inflated.kind === 'too_large') return err('inflated_too_large')
    if (inflated.kind === 'broken') return err(v1CaptureErrors.undecodable)
    bytes = inflated.bytes
  }
  if (!isUtf8(bytes)) return err(unparsableBody(null))
  const ascii = isAscii(bytes)
  return ok({ bytes, text: bytes.toString(ascii ? 'latin1' : 'utf8'), ascii })
}

function unread(error: WireError): PreparedV1Capture {
  return { kind: 'refused', error, eventCount: 1, body: '' }
}
