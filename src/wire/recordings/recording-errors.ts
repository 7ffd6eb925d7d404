// Refusals of recordings, in addition to `capture-errors.ts`, with the texts of PostHog's capture.
// Source: docs/wire/ingestion.md 1.7, 1.8.

import { type RecordingRefusal, recordingBytesMax, refusedRecordingFields } from '#core/capture/prepare-recording.ts'
import { type WireError, wireError } from '../wire-error.ts'

export const recordingBodyBytesMax = 25 * 1024 * 1024
/** A decompressed body may be five times as large as the largest body on the wire. Source: docs/wire/ingestion.md 9. */
export const recordingDecodedBytesMax = 5 * recordingBodyBytesMax

const createTooLargeError = (text: string, attr: string | null = null) =>
  wireError(413, 'payload_too_large', `maximum event size exceeded: ${text}`, attr)

export const recordingErrors = {
  bodyTooLarge: createTooLargeError(`Request body exceeds limit of ${recordingBodyBytesMax} bytes`),
  decodedTooLarge: createTooLargeError(
    `Decompressed body exceeds limit of ${recordingDecodedBytesMax} bytes, or of what its compressed size may stand for`,
  ),
} as const

/** The answer to a request whose snapshots cannot be kept. */
export function createRecordingRefusedError(refusal: RecordingRefusal): WireError {
  return refusals[refusal]
}

const refusals: Record<RecordingRefusal, WireError> = {
  missing_session_id: createRefusalError('missing_session_id', 'replay event submitted without session id'),
  invalid_session_id: createRefusalError('invalid_session_id', 'replay event has invalid session id'),
  missing_distinct_id: createRefusalError('missing_distinct_id', 'event submitted without a distinct_id'),
  missing_snapshot_data: createRefusalError('missing_snapshot_data', 'replay event submitted without snapshot data'),
  replay_too_large: createTooLargeError(
    `Snapshots exceed limit of ${recordingBytesMax} bytes`,
    refusedRecordingFields.replay_too_large,
  ),
}

function createRefusalError(refusal: RecordingRefusal, text: string): WireError {
  return wireError(400, refusal, text, refusedRecordingFields[refusal])
}
