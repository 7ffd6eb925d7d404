// Finds the position of each record and its key in an encoded run, without decoding. For a log that spreads records
// over several streams: the records of one distinct id must go to the same stream, which preserves their order. The log
// of segments has one stream per kind of traffic and does not need this.

import { readRecordSizeAt } from '#core/log/record-codec.ts'
import { field, headerBytes } from '#core/log/record-layout.ts'

/** All positions are bytes from the start of the run. */
export interface RecordKey {
  readonly start: number
  readonly end: number
  readonly projectId: number
  /** The distinct id in UTF-8, which is the record's key together with the project. Empty for a reject without one. */
  readonly keyStart: number
  readonly keyEnd: number
}

/**
 * The records of a run of events, rejects or recordings, in order. Call it once their project is assigned; the checksum
 * may still be missing.
 * @throws RangeError for bytes that are not a run of encoded records.
 */
export function* recordKeys(bytes: Uint8Array): Generator<RecordKey> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let start = 0; start < bytes.length; ) {
    const size = readRecordSizeAt(view, start)
    if (size === 0) throw new RangeError(`no record of the log begins at byte ${start} of ${bytes.length}`)
    const lengthAt = (place: number) => view.getUint32(start + place, true)
    // The distinct id is the fourth text of every kind of record.
    const before = lengthAt(field.tokenLength) + lengthAt(field.uuidLength) + lengthAt(field.nameLength)
    const headStart = start + headerBytes
    const headEnd = headStart + lengthAt(field.headBytes)
    const keyStart = skipUnits(bytes, headStart, headEnd, before)
    const keyEnd = skipUnits(bytes, keyStart, headEnd, lengthAt(field.distinctIdLength))
    yield { start, end: start + size, projectId: lengthAt(field.projectId), keyStart, keyEnd }
    start += size
  }
}

/** The byte after `unitCount` UTF-16 units of UTF-8 text; lengths in the head are counted in these units. */
function skipUnits(bytes: Uint8Array, from: number, end: number, unitCount: number): number {
  let at = from
  for (let units = 0; units < unitCount && at < end; ) {
    const lead = bytes[at]!
    const byteCount = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    at += byteCount
    units += byteCount === 4 ? 2 : 1
  }
  return Math.min(at, end)
}
