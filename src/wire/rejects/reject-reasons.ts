// The codes that a kept reject may have as its reason, gathered from where they are decided. A store may hold others:
// those that another version had. `docs/wire/errors.md` says what they mean.

import { eventRefusals } from '#core/capture/normalize-event.ts'
import { v1DropReasons } from '#core/capture/normalize-v1-event.ts'
import { replayRefusals } from '#core/capture/prepare-replay.ts'
import { rejectReasons } from '#core/processing/rejects.ts'
import { captureErrors } from '../capture/capture-errors.ts'
import { v1CaptureErrors } from '../capture-v1/v1-capture-errors.ts'
import type { WireError } from '../wire-error.ts'

/** The codes of errors whose text is made with what was sent, so that no list has them. */
const madeCodes = [
  ...['invalid_query', 'invalid_json', 'invalid_shape', 'invalid_api_key', 'missing_required_headers'],
  ...['invalid_header_value', 'unsupported_content_type', 'unsupported_encoding', 'request_parsing_error'],
  ...['invalid_batch', 'missing_event_uuid', 'invalid_event_uuid', 'duplicate_event_uuid'],
]

export const knownRejectReasons: readonly string[] = [
  ...new Set([
    ...eventRefusals,
    ...v1DropReasons,
    ...replayRefusals,
    ...rejectReasons,
    ...finalCodes(captureErrors),
    ...finalCodes(v1CaptureErrors),
    ...madeCodes,
  ]),
]

/** What a client sends again leaves no reject. */
function finalCodes(errors: Readonly<Record<string, WireError>>): string[] {
  return Object.values(errors)
    .filter(({ status }) => status < 500 && status !== 408)
    .map(({ code }) => code)
}
