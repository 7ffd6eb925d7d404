// Reads a recording payload: its shape, its token, the fields of its first element, and the snapshots of all elements
// as slices of the client's text. The rules are in `core/capture/prepare-recording.ts`.

import { ascii } from '#core/ascii.ts'
import type { IncomingRecording, RecordingItems } from '#core/capture/prepare-recording.ts'
import { parseZonedTimestampText } from '#core/capture/timestamp-text.ts'
import { err, ok, type Result } from '#core/result.ts'
import { findMemberSlice, slice, slicesPerItem } from '../bytes/json-slices.ts'
import { findBareEventError } from '../capture/broken-envelope.ts'
import type { CapturePayload } from '../capture/capture-body.ts'
import { captureErrors, captureItemCountMax, createUnknownShapeError } from '../capture/capture-errors.ts'
import { checkToken } from '../capture/capture-token.ts'
import {
  findFieldsFault,
  findListFault,
  hasEventName,
  isObject,
  type ParsedObject,
  readTokenIn,
  uuidOf,
} from '../capture/event-fields.ts'
import { createIdByteBudget, distinctIdOf } from '../capture/incoming-item.ts'
import {
  type CaptureContext,
  type CaptureRefusal,
  createWholeRequestRefusal,
  readBodyRoot,
} from '../capture/open-request.ts'
import type { WireError } from '../wire-error.ts'

const { comma, openBracket, closeBracket } = ascii

export type RecordingContext = Pick<CaptureContext, 'querySentAtMs' | 'fallbackToken' | 'structuredIdBytesMax'>

export type RecordingParse = Result<IncomingRecording | 'too_much_work', CaptureRefusal>

/**
 * Reads one `$snapshot` event or a list of them; an envelope with `batch` is not accepted. Every element must have the
 * fields of an event, but only the fields of the first element are used. Source: docs/wire/ingestion.md 1.7 (order), 1.8,
 * 2.2.
 */
export function parseRecordingRequest(payload: CapturePayload, context: RecordingContext): RecordingParse {
  const read = readBodyRoot(payload, context, createWholeRequestRefusal)
  if (!read.ok) return read
  const { root, slices, refuse } = read.value
  const elements = readElements(root)
  if (!elements.ok) return refuse(elements.error)
  const [first] = elements.value
  if (first === undefined) return refuse(captureErrors.emptyBatch)
  if (elements.value.length > captureItemCountMax) return refuse(captureErrors.tooManyItems)
  const token = checkToken(readTokenIn(first) ?? payload.formToken ?? context.fallbackToken)
  if (!token.ok) return refuse(token.error)
  if (slices === null) return refuse(captureErrors.nestedTooDeep)
  const id = distinctIdOf(first, payload, slices, 0, createIdByteBudget(context.structuredIdBytesMax))
  if (!id.ok) return id.error === 'too_much_work' ? ok(id.error) : refuse(createUnknownShapeError(id.error))
  const properties = readProperties(first)
  return ok({
    token: token.value,
    sessionId: properties.$session_id,
    windowId: textOrNull(properties.$window_id),
    distinctId: id.value,
    uuid: uuidOf(first),
    timestamp: textOrNull(first.timestamp),
    offsetMs: typeof first.offset === 'number' ? first.offset : null,
    ignoreSentAt: properties.$ignore_sent_at === true,
    sentAtMs:
      (typeof first.sent_at === 'string' ? parseZonedTimestampText(first.sent_at) : null) ?? context.querySentAtMs,
    snapshotSource: textOrNull(properties.$snapshot_source),
    lib: textOrNull(properties.$lib),
    items: readItems(elements.value, payload.bytes, index => slices[index * slicesPerItem + slice.properties]!),
  })
}

function readElements(root: unknown): Result<readonly ParsedObject[], WireError> {
  if (Array.isArray(root)) {
    const fault = findListFault(root, '')
    return fault === null ? ok(root as ParsedObject[]) : err(createUnknownShapeError(fault))
  }
  if (!isObject(root)) return err(createUnknownShapeError(null))
  const fault = findFieldsFault(root)
  if (fault !== null) return err(createUnknownShapeError(fault))
  return hasEventName(root) ? ok([root]) : err(findBareEventError(root))
}

/**
 * Joins lists and adds objects, all as they were written.
 * @param propertiesStart the offset in `json` of an element's properties.
 */
function readItems(
  elements: readonly ParsedObject[],
  json: Buffer,
  propertiesStart: (index: number) => number,
): RecordingItems | null {
  const parts: Buffer[] = []
  let count = 0
  for (let index = 0; index < elements.length; index++) {
    const data = readProperties(elements[index]!).$snapshot_data
    if (typeof data !== 'object' || data === null) return null
    const added = Array.isArray(data) ? data.length : 1
    if (added === 0) continue
    const [start, end] = findMemberSlice(json, propertiesStart(index), '$snapshot_data')
    const isList = json[start] === openBracket
    parts.push(isList ? json.subarray(start + 1, end - 1) : json.subarray(start, end))
    count += added
  }
  return { json: joinParts(parts), count }
}

/** `[first,second…]`, copied once. */
function joinParts(parts: readonly Buffer[]): Buffer {
  const size = parts.reduce((sum, { length }) => sum + length + 1, 0)
  const list = Buffer.allocUnsafe(Math.max(size, 1) + 1)
  list[0] = openBracket
  let end = 1
  for (const part of parts) {
    end += part.copy(list, end)
    list[end++] = comma
  }
  list[parts.length === 0 ? end++ : end - 1] = closeBracket
  return list.subarray(0, end)
}

const noProperties: ParsedObject = Object.freeze({})

function readProperties(element: ParsedObject): ParsedObject {
  return isObject(element.properties) ? element.properties : noProperties
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
