// The codes that a kept reject may have as its reason, gathered from the files that decide them. A store may hold other
// codes, from another version of Pennon. `docs/wire/errors.md` explains them.

import { eventRefusals } from '#core/capture/normalize-event.ts'
import { v1DropReasons } from '#core/capture/normalize-v1-event.ts'
import { recordingRefusals } from '#core/capture/prepare-recording.ts'
import { rejectReasons } from '#core/processing/rejects/rejects.ts'
import { captureErrors } from '../capture/capture-errors.ts'
import { v1CaptureErrors } from '../capture-v1/batch-errors.ts'
import type { WireError } from '../wire-error.ts'

/** Codes of errors whose text depends on the request, so that no list has them. */
const madeCodes = [
  ...['invalid_query', 'invalid_json', 'invalid_shape', 'invalid_api_key', 'missing_required_headers'],
  ...['invalid_header_value', 'unsupported_content_type', 'unsupported_encoding', 'request_parsing_error'],
  ...['invalid_batch', 'missing_event_uuid', 'invalid_event_uuid', 'duplicate_event_uuid'],
]

export const knownRejectReasons: readonly string[] = [
  ...new Set([
    ...eventRefusals,
    ...v1DropReasons,
    ...recordingRefusals,
    ...rejectReasons,
    ...listCodesNotRetried(captureErrors),
    ...listCodesNotRetried(v1CaptureErrors),
    ...madeCodes,
  ]),
]

/** The codes of errors that clients do not retry: a request that is sent again leaves no reject. */
function listCodesNotRetried(errors: Readonly<Record<string, WireError>>): string[] {
  return Object.values(errors)
    .filter(({ status }) => status < 500 && status !== 408)
    .map(({ code }) => code)
}
