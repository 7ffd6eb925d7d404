// The refusals that replay has beside those of capture (`capture-errors.ts`), with the texts that PostHog's capture answers.
// Source: docs/wire/ingestion.md 1.7, 1.8.

import { type ReplayRefusal, replayBytesMax } from '#core/events/prepare-replay.ts'
import { type WireError, wireError } from './wire-error.ts'

export const replayBodyBytesMax = 25 * 1024 * 1024
/** Of a body after decompression: five times what may come over the wire. Source: docs/wire/ingestion.md 9. */
export const replayDecodedBytesMax = 5 * replayBodyBytesMax

const tooLarge = (text: string, attr: string | null = null) =>
  wireError(413, 'payload_too_large', `maximum event size exceeded: ${text}`, attr)

export const replayErrors = {
  bodyTooLarge: tooLarge(`Request body exceeds limit of ${replayBodyBytesMax} bytes`),
  decodedTooLarge: tooLarge(`Decompressed body exceeds limit of ${replayDecodedBytesMax} bytes`),
} as const

/** The answer to a request whose snapshots cannot be kept. */
export function replayRefused(refusal: ReplayRefusal): WireError {
  return refusals[refusal]
}

const refusals: Record<ReplayRefusal, WireError> = {
  missing_session_id: wireError(
    400,
    'missing_session_id',
    'replay event submitted without session id',
    'properties.$session_id',
  ),
  invalid_session_id: wireError(
    400,
    'invalid_session_id',
    'replay event has invalid session id',
    'properties.$session_id',
  ),
  missing_distinct_id: wireError(400, 'missing_distinct_id', 'event submitted without a distinct_id', 'distinct_id'),
  missing_snapshot_data: wireError(
    400,
    'missing_snapshot_data',
    'replay event submitted without snapshot data',
    'properties.$snapshot_data',
  ),
  replay_too_large: tooLarge(`Snapshots exceed limit of ${replayBytesMax} bytes`, 'properties.$snapshot_data'),
}
