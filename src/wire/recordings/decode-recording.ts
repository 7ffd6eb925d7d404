// Turns the bytes of a recording request into the stored record. Pure, so that it can run on the event loop for small
// bodies, and in a decode thread for bodies that would hold the loop.

import { prepareRecording, type ReceivedRecording, type RecordingRequest } from '#core/capture/prepare-recording.ts'
import { toReadOnlyRejectBody } from '#core/capture/reject-body.ts'
import { type CaptureBody, readCaptureBody } from '../capture/capture-body.ts'
import { type DecodeLimits, inlineLimits, type RefusedCapture } from '../capture/decode-capture.ts'
import { structuredIdBytesMax } from '../capture/incoming-item.ts'
import { recordingDecodedBytesMax, recordingErrors } from './recording-errors.ts'
import { parseRecordingRequest } from './recording-request.ts'

export interface RecordingInput extends Omit<CaptureBody, 'legacyPath'> {
  readonly querySentAtMs: number | null
  readonly fallbackToken: string | null
}

export type PreparedRecording = RecordingRequest | RefusedCapture

type RecordingLimits = Pick<DecodeLimits, 'decodedBytesMax' | 'structuredIdBytesMax'>

/**
 * These limits are low because all of a recording is parsed and its snapshots are packed; its sender does not wait for the
 * answer.
 */
const inlineRecordingLimits: RecordingLimits = {
  decodedBytesMax: inlineLimits.parsedBytesMax,
  structuredIdBytesMax: inlineLimits.structuredIdBytesMax,
}
const threadLimits: RecordingLimits = { decodedBytesMax: recordingDecodedBytesMax, structuredIdBytesMax }

/** For the event loop: `too_much_work` for a body that a decode thread has to take. */
export function decodeRecordingOnEventLoop(
  input: RecordingInput,
  received: ReceivedRecording,
): PreparedRecording | 'too_much_work' {
  if (input.body.length > inlineRecordingLimits.decodedBytesMax) return 'too_much_work'
  return decodeWithinLimits(input, received, inlineRecordingLimits)
}

/** For a decode thread: reads bodies up to the wire's limits. */
export function decodeRecordingRequest(input: RecordingInput, received: ReceivedRecording): PreparedRecording {
  const decoded = decodeWithinLimits(input, received, threadLimits)
  if (decoded !== 'too_much_work') return decoded
  return { kind: 'refused', error: recordingErrors.decodedTooLarge, token: input.fallbackToken, body: '' }
}

function decodeWithinLimits(
  input: RecordingInput,
  received: ReceivedRecording,
  { decodedBytesMax, structuredIdBytesMax }: RecordingLimits,
): PreparedRecording | 'too_much_work' {
  const { fallbackToken, querySentAtMs } = input
  const payload = readCaptureBody({ ...input, legacyPath: false }, decodedBytesMax)
  if (!payload.ok) {
    if (payload.error === 'inflated_too_large') return 'too_much_work'
    return { kind: 'refused', error: payload.error, token: fallbackToken, body: '' }
  }
  const parsed = parseRecordingRequest(payload.value, { querySentAtMs, fallbackToken, structuredIdBytesMax })
  if (!parsed.ok) {
    const { error, token } = parsed.error
    return { kind: 'refused', error, token, body: token === null ? '' : toReadOnlyRejectBody(payload.value.text) }
  }
  if (parsed.value === 'too_much_work') return 'too_much_work'
  const { token, uuid, distinctId } = parsed.value
  const prepared = prepareRecording(parsed.value, received)
  if (typeof prepared !== 'string') return { kind: 'prepared', token, record: prepared }
  const item = { uuid: uuid ?? '', name: '$snapshot', distinctId: distinctId ?? '' }
  return { kind: 'unfit', token, refusal: prepared, body: toReadOnlyRejectBody(payload.value.text), item }
}
