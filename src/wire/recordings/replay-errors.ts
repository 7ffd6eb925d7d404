// The refusals that replay has beside those of capture (`capture-errors.ts`), with the texts that PostHog's capture answers.
// Source: docs/wire/ingestion.md 1.7, 1.8.

import { type ReplayRefusal, refusedReplayFields, replayBytesMax } from '#core/capture/prepare-replay.ts'
import { type WireError, wireError } from '../wire-error.ts'

export const replayBodyBytesMax = 25 * 1024 * 1024
/** A decompressed body may have five times what may come over the wire. Source: docs/wire/ingestion.md 9. */
export const replayDecodedBytesMax = 5 * replayBodyBytesMax

const tooLarge = (text: string, attr: string | null = null) =>
  wireError(413, 'payload_too_large', `maximum event size exceeded: ${text}`, attr)

export const replayErrors = {
  bodyTooLarge: tooLarge(`Request body exceeds limit of ${replayBodyBytesMax} bytes`),
  decodedTooLarge: tooLarge(
    `Decompressed body exceeds limit of ${replayDecodedBytesMax} bytes, or of what its compressed size may stand for`,
  ),
} as const

/** The answer to a request whose snapshots cannot be kept. */
export function replayRefused(refusal: ReplayRefusal): WireError {
  return refusals[refusal]
}

const refusals: Record<ReplayRefusal, WireError> = {
  missing_session_id: refused('missing_session_id', 'replay event submitted without session id'),
  invalid_session_id: refused('invalid_session_id', 'replay event has invalid session id'),
  missing_distinct_id: refused('missing_distinct_id', 'event submitted without a distinct_id'),
  missing_snapshot_data: refused('missing_snapshot_data', 'replay event submitted without snapshot data'),
  replay_too_large: tooLarge(`Snapshots exceed limit of ${replayBytesMax} bytes`, refusedReplayFields.replay_too_large),
}

function refused(refusal: ReplayRefusal, text: string): WireError {
  return wireError(400, refusal, text, refusedReplayFields[refusal])
}
