// Encodes events and rejects in version 1 of the log's binary format, and makes the two later passes over the encoded bytes
// (project id, checksum). `record-decoder.ts` decodes them; adapters decide where the bytes are written.

import { crc32 } from 'node:zlib'
import { type CapturedEvent, type CapturedReject, type Lane, lanes } from '../events/captured-event.ts'
import { encodeRejectSource } from '../events/reject-source.ts'
import { encodeVisitor } from '../events/visitor-text.ts'
import { checksumStart, field, flag, headerBytes, kindEvent, kindReject, recordVersion } from './record-layout.ts'

/** A run: concatenated encoded records, ready to hand to a thread without copying. */
export interface EncodedRecords {
  /** The receiver owns the bytes and may transfer their buffer if the view covers all of it. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly recordCount: number
}

const laneCodes = new Map<Lane, number>(lanes.map((lane, index) => [lane, index]))

/**
 * A run up to this size is copied out of its buffer, which the next encoder reuses: every new buffer brings the next full
 * garbage collection closer. A larger run keeps its buffer.
 */
const copiedBytesMax = 256 * 1024
/**
 * A run up to this size may share a buffer with others; a larger run has a separate buffer, so that it can be transferred.
 */
const pooledBytesMax = 2 * 1024
const spareBytesMax = 512 * 1024
const firstBufferBytes = 64 * 1024
/** A text up to this length reserves three bytes per UTF-16 unit instead of being measured. */
const unmeasuredLength = 4096

let spare: Buffer<ArrayBuffer> | null = null

/**
 * Encodes events and rejects one after another, without checksums: the writing thread computes them (`addRecordChecksums`). Takes
 * about 0.5 µs for an event of 1 KB.
 * @throws RangeError if a project or import job id is not an unsigned 32-bit integer.
 */
export class RecordEncoder {
  #buffer: Buffer<ArrayBuffer> | null = null
  #view: DataView<ArrayBuffer> = emptyView
  #used = 0
  #recordCount = 0

  get recordCount(): number {
    return this.#recordCount
  }

  /** Bytes encoded so far. */
  get bytes(): number {
    return this.#used
  }

  /**
   * @param settled the additions to an event of cookieless mode. The event's `ip` must be '', its `visitor` null, and its
   * properties must end with `}`.
   */
  addEvent(event: CapturedEvent, settled: SettledVisitor | null = null): void {
    const set = event.setJson
    const setOnce = event.setOnceJson
    const flags =
      (event.historicalMigration ? flag.historicalMigration : 0) |
      (event.protocol === 'v1' ? flag.protocolV1 : 0) |
      (event.personProcessingForcedOff ? flag.personProcessingForcedOff : 0) |
      (event.sentAtMs !== null ? flag.hasSentAt : 0) |
      (set !== null ? flag.hasSet : 0) |
      (setOnce !== null ? flag.hasSetOnce : 0) |
      (event.visitor !== null || settled !== null ? flag.hasVisitor : 0)
    const ip = event.visitor === null ? event.ip : encodeVisitor(event.visitor)
    const keepsId = settled === null || settled.distinctIdLength === null
    const id = keepsId ? event.distinctId : ''
    const head = event.token + event.uuid + event.name + id + (settled === null ? ip : settled.headEnd)
    const body = event.propertiesJson
    const bodyEnd = settled === null ? '' : settled.bodyEnd
    const start = this.#used
    const buffer = this.#reserve(
      headerBytes +
        boundUtf8Bytes(head) +
        boundUtf8Bytes(body) +
        boundUtf8Bytes(bodyEnd) +
        (set === null ? 0 : boundUtf8Bytes(set)) +
        (setOnce === null ? 0 : boundUtf8Bytes(setOnce)),
    )
    const view = this.#view
    writeHeader(view, start, kindEvent, flags, event)
    if (!keepsId) view.setUint32(start + field.distinctIdLength, settled.distinctIdLength, true)
    view.setUint32(start + field.ipLength, settled === null ? ip.length : settled.visitorLength, true)
    view.setUint32(start + field.notes, event.notes, true)
    view.setFloat64(start + field.timestampMs, event.timestampMs, true)
    view.setFloat64(start + field.sentAtMs, event.sentAtMs ?? 0, true)
    let at = start + headerBytes
    const headBytes = buffer.write(head, at, 'utf8')
    at += headBytes
    let bodyBytes = buffer.write(body, at, 'utf8')
    if (bodyEnd !== '') {
      const end = body.length === emptyBodyBytes ? bodyEnd.slice(1) : bodyEnd
      bodyBytes += buffer.write(end, at + bodyBytes - 1, 'utf8') - 1
    }
    at += bodyBytes
    const setBytes = set === null ? 0 : buffer.write(set, at, 'utf8')
    at += setBytes
    if (setOnce !== null) at += buffer.write(setOnce, at, 'utf8')
    this.#finishRecord(start, at, headBytes, bodyBytes, setBytes)
  }

  addReject(reject: CapturedReject): void {
    const head = reject.token + reject.uuid + reject.name + reject.distinctId + reject.reason + reject.field
    const start = this.#used
    const source = encodeRejectSource(reject.source ?? null)
    const buffer = this.#reserve(
      headerBytes + boundUtf8Bytes(head) + boundUtf8Bytes(reject.body) + boundUtf8Bytes(source),
    )
    const view = this.#view
    writeHeader(view, start, kindReject, reject.historicalMigration ? flag.historicalMigration : 0, reject)
    view.setUint32(start + field.ipLength, reject.reason.length, true)
    view.setUint32(start + field.fieldLength, reject.field.length, true)
    view.setFloat64(start + field.timestampMs, 0, true)
    view.setFloat64(start + field.sentAtMs, 0, true)
    const at = start + headerBytes
    const headBytes = buffer.write(head, at, 'utf8')
    const bodyBytes = buffer.write(reject.body, at + headBytes, 'utf8')
    const sourceBytes = buffer.write(source, at + headBytes + bodyBytes, 'utf8')
    this.#finishRecord(start, at + headBytes + bodyBytes + sourceBytes, headBytes, bodyBytes, sourceBytes)
  }

  /**
   * Adds an event of another run, with its settled visitor.
   * @param start where its record begins. The record must have no ip, and properties that end with `}`.
   */
  addSettled(run: Buffer, start: number, { distinctIdLength, visitorLength, headEnd, bodyEnd }: SettledVisitor): void {
    const size = run.readUInt32LE(start + field.size)
    const target = this.#reserve(size + boundUtf8Bytes(headEnd) + boundUtf8Bytes(bodyEnd))
    const bodyStart = start + headerBytes + run.readUInt32LE(start + field.headBytes)
    const setStart = bodyStart + run.readUInt32LE(start + field.bodyBytes)
    const keptHeadEnd = distinctIdLength === null ? bodyStart : bodyStart - measureDistinctIdBytes(run, start)
    const newStart = this.#used
    let at = newStart + run.copy(target, newStart, start, keptHeadEnd)
    at += target.write(headEnd, at, 'utf8')
    const newBodyStart = at
    at += run.copy(target, at, bodyStart, bodyEnd === '' ? setStart : setStart - 1)
    if (bodyEnd !== '')
      at += target.write(setStart - bodyStart === emptyBodyBytes ? bodyEnd.slice(1) : bodyEnd, at, 'utf8')
    const newSetStart = at
    at += run.copy(target, at, setStart, start + size)
    const view = this.#view
    view.setUint8(newStart + field.flags, view.getUint8(newStart + field.flags) | flag.hasVisitor)
    if (distinctIdLength !== null) view.setUint32(newStart + field.distinctIdLength, distinctIdLength, true)
    view.setUint32(newStart + field.ipLength, visitorLength, true)
    const headBytes = newBodyStart - newStart - headerBytes
    const setBytes = view.getUint32(newStart + field.setBytes, true)
    this.#finishRecord(newStart, at, headBytes, newSetStart - newBodyStart, setBytes)
  }

  /** Adds a record of another run unchanged. @param start where the record begins. */
  addRecord(run: Buffer, start: number): void {
    const size = run.readUInt32LE(start + field.size)
    run.copy(this.#reserve(size), this.#used, start, start + size)
    this.#used += size
    this.#recordCount++
  }

  /** Returns everything added since the last `finish`; the encoder is empty afterwards and can be reused. */
  finish(): EncodedRecords {
    const encoded = { bytes: this.#takeBytes(), recordCount: this.#recordCount }
    this.#buffer = null
    this.#used = 0
    this.#recordCount = 0
    return encoded
  }

  #takeBytes(): Uint8Array<ArrayBuffer> {
    const buffer = this.#buffer
    if (buffer === null) return new Uint8Array(0)
    if (this.#used > copiedBytesMax) return new Uint8Array(buffer.buffer.transfer(this.#used))
    const copy = this.#used <= pooledBytesMax ? Buffer.allocUnsafe(this.#used) : Buffer.allocUnsafeSlow(this.#used)
    buffer.copy(copy, 0, 0, this.#used)
    if (buffer.length <= spareBytesMax) spare = buffer
    // Returns a plain Uint8Array, because a Buffer's `slice` shares memory although the type promises a copy.
    return new Uint8Array(copy.buffer, copy.byteOffset, copy.length)
  }

  #finishRecord(start: number, end: number, headBytes: number, bodyBytes: number, setBytes: number): void {
    const view = this.#view
    view.setUint32(start + field.headBytes, headBytes, true)
    view.setUint32(start + field.bodyBytes, bodyBytes, true)
    view.setUint32(start + field.setBytes, setBytes, true)
    view.setUint32(start + field.size, end - start, true)
    this.#used = end
    this.#recordCount++
  }

  #reserve(bytes: number): Buffer<ArrayBuffer> {
    const needed = this.#used + bytes
    const current = this.#buffer
    if (current !== null && needed <= current.length) return current
    const next =
      current === null ? takeSpareBuffer(needed) : Buffer.allocUnsafeSlow(Math.max(needed, current.length * 2))
    if (current !== null) current.copy(next, 0, 0, this.#used)
    this.#buffer = next
    this.#view = new DataView(next.buffer, next.byteOffset, next.length)
    return next
  }
}

/** The additions to an encoded event once its visitor is known, in the form of the record. */
export interface SettledVisitor {
  /** Lengths of the two texts that `headEnd` joins; the first is null when the event keeps its distinct id. */
  readonly distinctIdLength: number | null
  readonly visitorLength: number
  readonly headEnd: string
  /** Replaces the last brace of the event's properties; '' to keep the brace. */
  readonly bodyEnd: string
}

/**
 * @param distinctId null when the event keeps its own distinct id.
 * @param visitorText the result of `encodeVisitor`.
 * @param membersText members to append to the properties, such as `"a":1,"b":2`; '' for none.
 */
export function createSettledVisitor(
  distinctId: string | null,
  visitorText: string,
  membersText: string,
): SettledVisitor {
  return {
    distinctIdLength: distinctId === null ? null : distinctId.length,
    visitorLength: visitorText.length,
    headEnd: distinctId === null ? visitorText : distinctId + visitorText,
    bodyEnd: membersText === '' ? '' : `,${membersText}}`,
  }
}

/** The size of the body `{}`. */
const emptyBodyBytes = 2

/** The size in bytes of the distinct id of an event without ip: the id is then the last text of the record's head. */
function measureDistinctIdBytes(run: Buffer, start: number): number {
  const length = run.readUInt32LE(start + field.distinctIdLength)
  const headBytes = run.readUInt32LE(start + field.headBytes)
  const othersLength =
    run.readUInt32LE(start + field.tokenLength) +
    run.readUInt32LE(start + field.uuidLength) +
    run.readUInt32LE(start + field.nameLength)
  // If the lengths, which count UTF-16 units, add up to the head's bytes, the head is ASCII.
  if (othersLength + length === headBytes) return length
  const head = run.toString('utf8', start + headerBytes, start + headerBytes + headBytes)
  return Buffer.byteLength(head.slice(othersLength))
}

/**
 * Writes the project id into every record of a run that was encoded before its project was known. Call it only before
 * `addRecordChecksums`. Works byte by byte, because most runs have one record and a DataView would cost more.
 * @throws RangeError for a project id that is not an unsigned 32-bit integer, and for bytes that are not a run of records.
 */
export function writeProjectIdIntoRecords(bytes: Uint8Array<ArrayBuffer>, projectId: number): void {
  requireUint32(projectId, 'project id')
  for (let at = 0, size = 0; at < bytes.length; at += size) {
    size = (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
    if (size < headerBytes || size > bytes.length - at) throw createNoRecordError(at, bytes.length)
    bytes[at + field.projectId] = projectId
    bytes[at + field.projectId + 1] = projectId >>> 8
    bytes[at + field.projectId + 2] = projectId >>> 16
    bytes[at + field.projectId + 3] = projectId >>> 24
  }
}

/**
 * Fills in the checksum of every record of an encoded run. No byte may change afterwards.
 * @returns the start of each record and the end of the last one: `recordCount + 1` offsets.
 * @throws RangeError for bytes that are not a run of encoded records.
 */
export function addRecordChecksums(bytes: Uint8Array<ArrayBuffer>): number[] {
  const view = createDataView(bytes)
  const places = [0]
  for (let at = 0; at < bytes.length; ) {
    const size = requireRecordBytes(view, at)
    view.setUint32(at + field.checksum, crc32(bytes.subarray(at + checksumStart, at + size)), true)
    at += size
    places.push(at)
  }
  return places
}

/** The size of the record that begins at `at`, or 0 if the length there cannot be right. */
export function readRecordSizeAt(view: DataView, at: number): number {
  const left = view.byteLength - at
  if (left < headerBytes) return 0
  const size = view.getUint32(at + field.size, true)
  return size >= headerBytes && size <= left ? size : 0
}

function requireRecordBytes(view: DataView, at: number): number {
  const size = readRecordSizeAt(view, at)
  if (size === 0) throw createNoRecordError(at, view.byteLength)
  return size
}

function createNoRecordError(at: number, length: number): RangeError {
  return new RangeError(`no record of the log begins at byte ${at} of ${length}`)
}

/** The fields that events and rejects share. */
function writeHeader(
  view: DataView,
  start: number,
  kind: number,
  flags: number,
  record: CapturedEvent | CapturedReject,
): void {
  view.setUint32(start + field.checksum, 0, true)
  view.setUint8(start + field.version, recordVersion)
  view.setUint8(start + field.kind, kind)
  view.setUint8(start + field.lane, laneCodes.get(record.lane)!)
  view.setUint8(start + field.flags, flags)
  view.setUint32(start + field.projectId, requireUint32(record.projectId, 'project id'), true)
  view.setUint32(start + field.importJobId, requireUint32(record.importJobId, 'import job id'), true)
  view.setUint32(start + field.tokenLength, record.token.length, true)
  view.setUint32(start + field.uuidLength, record.uuid.length, true)
  view.setUint32(start + field.nameLength, record.name.length, true)
  view.setUint32(start + field.distinctIdLength, record.distinctId.length, true)
  view.setFloat64(start + field.receivedAtMs, record.receivedAtMs, true)
  view.setFloat64(start + field.capturedAtMs, record.capturedAtMs, true)
}

function takeSpareBuffer(neededBytes: number): Buffer<ArrayBuffer> {
  const taken = spare
  if (taken !== null && taken.length >= neededBytes) {
    spare = null
    return taken
  }
  return Buffer.allocUnsafeSlow(Math.max(neededBytes, firstBufferBytes))
}

function boundUtf8Bytes(text: string): number {
  return text.length <= unmeasuredLength ? text.length * 3 : Buffer.byteLength(text, 'utf8')
}

function requireUint32(value: number, what: string): number {
  if (value >>> 0 !== value) throw new RangeError(`${what} ${value} is not an integer of 32 bits`)
  return value
}

function createDataView(bytes: Uint8Array<ArrayBuffer>): DataView<ArrayBuffer> {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

const emptyView = new DataView(new ArrayBuffer(0))
