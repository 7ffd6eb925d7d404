// Turns the bytes of a recording request into the record that is kept. Pure, so that it can run on the event loop for
// small bodies, and in a decode thread for bodies that would hold the loop.

import { prepareRecording, type ReceivedRecording, type RecordingRequest } from '#core/capture/prepare-recording.ts'
import { bodyToLookAt } from '#core/capture/reject-body.ts'
import { type CaptureBody, readCaptureBody } from '../capture/capture-body.ts'
import { captureValueCountMax } from '../capture/capture-errors.ts'
import { inlineStructuredIdBytesMax, type RefusedCapture } from '../capture/decode-capture.ts'
import { structuredIdBytesMax } from '../capture/incoming-item.ts'
import { recordingDecodedBytesMax, recordingErrors } from './recording-errors.ts'
import { parseRecordingRequest } from './recording-request.ts'

export interface RecordingInput extends Omit<CaptureBody, 'legacyPath'> {
  readonly querySentAtMs: number | null
  readonly fallbackToken: string | null
}

export type PreparedRecording = RecordingRequest | RefusedCapture

/**
 * How many bytes the event loop decodes itself: fewer than for events, because snapshots are also packed, and because
 * their sender does not wait for the answer. Source: ours.
 */
export const inlineRecordingBytesMax = { sent: 128 * 1024, decoded: 256 * 1024 } as const

interface RecordingLimits {
  readonly decodedBytesMax: number
  readonly valueCountMax: number
  readonly structuredIdBytesMax: number
}

const inlineLimits: RecordingLimits = {
  decodedBytesMax: inlineRecordingBytesMax.decoded,
  valueCountMax: 32 * 1024,
  structuredIdBytesMax: inlineStructuredIdBytesMax,
}
const threadLimits: RecordingLimits = {
  decodedBytesMax: recordingDecodedBytesMax,
  valueCountMax: captureValueCountMax,
  structuredIdBytesMax,
}

/** For the event loop: `too_much_work` for a body that a decode thread has to take. */
export function decodeRecordingInline(
  input: RecordingInput,
  received: ReceivedRecording,
): PreparedRecording | 'too_much_work' {
  return input.body.length > inlineRecordingBytesMax.sent ? 'too_much_work' : decode(input, received, inlineLimits)
}

/** For a decode thread: reads bodies up to the wire's limits. */
export function decodeRecording(input: RecordingInput, received: ReceivedRecording): PreparedRecording {
  const decoded = decode(input, received, threadLimits)
  if (decoded !== 'too_much_work') return decoded
  return { kind: 'refused', error: recordingErrors.decodedTooLarge, token: input.fallbackToken, body: '' }
}

function decode(
  input: RecordingInput,
  received: ReceivedRecording,
  { decodedBytesMax, ...limits }: RecordingLimits,
): PreparedRecording | 'too_much_work' {
  const { fallbackToken, querySentAtMs } = input
  const payload = readCaptureBody({ ...input, legacyPath: false }, decodedBytesMax)
  if (!payload.ok) {
    if (payload.error === 'inflated_too_large') return 'too_much_work'
    return { kind: 'refused', error: payload.error, token: fallbackToken, body: '' }
  }
  const parsed = parseRecordingRequest(payload.value, { querySentAtMs, fallbackToken, ...limits })
  if (!parsed.ok) {
    const { error, token } = parsed.error
    return { kind: 'refused', error, token, body: token === null ? '' : bodyToLookAt(payload.value.text) }
  }
  if (parsed.value === 'too_much_work') return 'too_much_work'
  const { token, uuid, distinctId } = parsed.value
  const prepared = prepareRecording(parsed.value, received)
  if (typeof prepared !== 'string') return { kind: 'prepared', token, record: prepared }
  const item = { uuid: uuid ?? '', name: '$snapshot', distinctId: distinctId ?? '' }
  return { kind: 'unfit', token, refusal: prepared, body: bodyToLookAt(payload.value.text), item }
}
