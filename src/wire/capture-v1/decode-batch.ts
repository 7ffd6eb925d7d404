// Turns the bytes of a v1 capture request into the capture service's input. Pure, so that it can run on the event loop
// for small bodies, and in a decode thread for bodies that would hold the loop.

import { isAscii, isUtf8 } from 'node:buffer'
import {
  type GetSettleVisitor,
  type PreparedRequest,
  prepareV1Events,
  type ReceivedRequest,
} from '#core/capture/prepare-events.ts'
import { toStoredRejectBody } from '#core/capture/reject-body.ts'
import type { RejectedBody } from '#core/events/captured-event.ts'
import { err, ok, type Result } from '#core/result.ts'
import { computeExpandedBytesMax, gunzip, inflateEncoding } from '../bytes/inflate.ts'
import { captureItemCountMax } from '../capture/capture-errors.ts'
import { inlineLimits } from '../capture/decode-capture.ts'
import type { WireError } from '../wire-error.ts'
import { createUnparsableBodyError, v1CaptureErrors, v1DecodedBytesMax } from './batch-errors.ts'
import type { V1Headers } from './batch-headers.ts'
import { parseV1Batch, type V1BatchLimits, type V1BatchRefusal, type V1Payload } from './batch-request.ts'

export interface V1CaptureInput {
  readonly headers: V1Headers
  readonly body: Buffer
  /** Whether the request's path accepts only AI events. */
  readonly aiOnly: boolean
}

/** The result of reading a body; events are encoded with project 0 for now. */
export type PreparedV1Capture =
  | (PreparedRequest & { readonly kind: 'prepared' })
  | ({
      readonly kind: 'refused'
      /** The body for the reject store, decoded if possible, and truncated. */
      readonly body: RejectedBody
    } & V1BatchRefusal)

interface V1DecodeLimits extends V1BatchLimits {
  readonly decodedBytesMax: number
}

/** A v1 batch is always parsed as a whole, so its body has the limit of parsed texts. */
const inlineV1Limits: V1DecodeLimits = {
  decodedBytesMax: inlineLimits.parsedBytesMax,
  itemCountMax: inlineLimits.itemCountMax,
}
const threadLimits: V1DecodeLimits = { decodedBytesMax: v1DecodedBytesMax, itemCountMax: captureItemCountMax }

/** For the event loop: `too_much_work` for a body that would hold it and needs a thread. */
export function prepareV1OnEventLoop(
  input: V1CaptureInput,
  received: ReceivedRequest,
  visitorsOf?: GetSettleVisitor,
): PreparedV1Capture | { readonly kind: 'too_much_work' } {
  if (input.body.length > inlineV1Limits.decodedBytesMax) return tooMuchWork
  return prepareWithinLimits(input, received, inlineV1Limits, visitorsOf)
}

/** For a thread: reads bodies up to the protocol's limits. */
export function prepareV1Capture(input: V1CaptureInput, received: ReceivedRequest): PreparedV1Capture {
  const prepared = prepareWithinLimits(input, received, threadLimits)
  return prepared.kind === 'too_much_work' ? refuseBatch(v1CaptureErrors.decodedTooLarge) : prepared
}

const tooMuchWork = { kind: 'too_much_work' } as const

function prepareWithinLimits(
  input: V1CaptureInput,
  received: ReceivedRequest,
  limits: V1DecodeLimits,
  visitorsOf?: GetSettleVisitor,
) {
  const { headers, body, aiOnly } = input
  if (body.length === 0) return refuseBatch(v1CaptureErrors.emptyBody)
  const payload = readPayload(input, limits.decodedBytesMax)
  if (!payload.ok) return payload.error === 'inflated_too_large' ? tooMuchWork : refuseBatch(payload.error)
  const batch = parseV1Batch(payload.value, limits)
  const { token, sentAtMs, sdk } = headers
  if (!batch.ok) {
    const body = toStoredRejectBody(payload.value.text, {
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
  const { historicalMigration } = batch.value
  const table = prepareV1Events({ ...batch.value, token, sentAtMs, sdk, aiOnly }, received, visitorsOf)
  return { kind: 'prepared', protocol: 'v1', token, historicalMigration, table, body: '' } as const
}

function readPayload(
  { headers, body }: V1CaptureInput,
  outputBytesMax: number,
): Result<V1Payload, WireError | 'inflated_too_large'> {
  let bytes = body
  const { encoding } = headers
  if (encoding !== '') {
    const bytesMax = computeExpandedBytesMax(body.length, outputBytesMax, 'stream')
    const inflated = encoding === 'gzip' ? gunzip(body, bytesMax) : inflateEncoding(encoding, body, bytesMax)
    if (inflated.kind === 'too_large') return err('inflated_too_large')
    if (inflated.kind === 'broken') return err(v1CaptureErrors.undecodable)
    bytes = inflated.bytes
  }
  if (!isUtf8(bytes)) return err(createUnparsableBodyError(null))
  const ascii = isAscii(bytes)
  return ok({ bytes, text: bytes.toString(ascii ? 'latin1' : 'utf8'), ascii })
}

function refuseBatch(error: WireError): PreparedV1Capture {
  return { kind: 'refused', error, eventCount: 1, body: '' }
}
