// The whole way from the bytes of a replay request to the record that is kept. Pure, so that it runs on the event loop for
// small bodies and in a decode thread (`decode-thread.ts`) for those that would hold it.

import { prepareReplay, type ReceivedReplay, type ReplayRequest } from '#core/capture/prepare-replay.ts'
import { bodyToLookAt } from '#core/capture/reject-body.ts'
import { type CaptureBody, readCaptureBody } from '../capture/capture-body.ts'
import { captureValueCountMax } from '../capture/capture-errors.ts'
import { inlineStructuredIdBytesMax, type RefusedCapture } from '../capture/decode-capture.ts'
import { structuredIdBytesMax } from '../capture/incoming-item.ts'
import { replayDecodedBytesMax, replayErrors } from './replay-errors.ts'
import { parseReplayRequest } from './replay-request.ts'

export interface ReplayInput extends Omit<CaptureBody, 'legacyPath'> {
  readonly querySentAtMs: number | null
  readonly fallbackToken: string | null
}

export type PreparedReplay = ReplayRequest | RefusedCapture

/**
 * What the event loop decodes itself, bytes: less than of events, because snapshots are packed besides, and because their
 * sender waits for nothing. Source: ours.
 */
export const inlineReplayBytesMax = { sent: 128 * 1024, decoded: 256 * 1024 } as const

interface ReplayLimits {
  readonly decodedBytesMax: number
  readonly valueCountMax: number
  readonly structuredIdBytesMax: number
}

const inlineLimits: ReplayLimits = {
  decodedBytesMax: inlineReplayBytesMax.decoded,
  valueCountMax: 32 * 1024,
  structuredIdBytesMax: inlineStructuredIdBytesMax,
}
const threadLimits: ReplayLimits = {
  decodedBytesMax: replayDecodedBytesMax,
  valueCountMax: captureValueCountMax,
  structuredIdBytesMax,
}

/** On the event loop: `too_much_work` for a body that a decode thread has to take. */
export function decodeReplayInline(input: ReplayInput, received: ReceivedReplay): PreparedReplay | 'too_much_work' {
  return input.body.length > inlineReplayBytesMax.sent ? 'too_much_work' : decode(input, received, inlineLimits)
}

/** In a decode thread, up to the limits of the wire. */
export function decodeReplay(input: ReplayInput, received: ReceivedReplay): PreparedReplay {
  const decoded = decode(input, received, threadLimits)
  if (decoded !== 'too_much_work') return decoded
  return { kind: 'refused', error: replayErrors.decodedTooLarge, token: input.fallbackToken, body: '' }
}

function decode(
  input: ReplayInput,
  received: ReceivedReplay,
  { decodedBytesMax, ...limits }: ReplayLimits,
): PreparedReplay | 'too_much_work' {
  const { fallbackToken, querySentAtMs } = input
  const payload = readCaptureBody({ ...input, legacyPath: false }, decodedBytesMax)
  if (!payload.ok) {
    if (payload.error === 'inflated_too_large') return 'too_much_work'
    return { kind: 'refused', error: payload.error, token: fallbackToken, body: '' }
  }
  const parsed = parseReplayRequest(payload.value, { querySentAtMs, fallbackToken, ...limits })
  if (!parsed.ok) {
    const { error, token } = parsed.error
    return { kind: 'refused', error, token, body: token === null ? '' : bodyToLookAt(payload.value.text) }
  }
  if (parsed.value === 'too_much_work') return 'too_much_work'
  const { token, uuid, distinctId } = parsed.value
  const prepared = prepareReplay(parsed.value, received)
  if (typeof prepared !== 'string') return { kind: 'prepared', token, record: prepared }
  const item = { uuid: uuid ?? '', name: '$snapshot', distinctId: distinctId ?? '' }
  return { kind: 'unfit', token, refusal: prepared, body: bodyToLookAt(payload.value.text), item }
}
