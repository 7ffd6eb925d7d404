// The binary form of what the log holds, version 1: how events and rejects become bytes on the way in, and the two
// passes over encoded bytes that others make before they are durable (project id, checksum). Reading them back is
// `record-decoder.ts`; where bytes go is the adapters' business.

import { crc32 } from 'node:zlib'
import { type CapturedEvent, type CapturedReject, type Lane, lanes } from '../events/captured-event.ts'
import { encodeRejectSource } from '../events/reject-source.ts'
import type { Steps } from '../maybe-steps.ts'
import { checksumStart, field, flag, headerBytes, kindEvent, kindReject, recordVersion } from './record-layout.ts'

/** Concatenated encoded records, ready to hand to a thread without copying. */
export interface EncodedRecords {
  /** Given away with the records: whoever takes them may transfer the buffer when the view covers all of it. */
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly recordCount: number
}

const recordsPerStep = 4_096

const laneCodes = new Map<Lane, number>(lanes.map((lane, index) => [lane, index]))

/**
 * Runs up to here are copied out of a buffer that the next encoder uses again, since every new one brings the next full
 * garbage collection closer; larger ones take their buffer along.
 */
const copiedBytesMax = 256 * 1024
/** A run that may share its memory with others; a longer one is alone in its memory, so that it can be transferred. */
const pooledBytesMax = 2 * 1024
const spareBytesMax = 512 * 1024
const firstBufferBytes = 64 * 1024
/** Texts up to here reserve three bytes per UTF-16 unit instead of being measured. */
const unmeasuredLength = 4096

let spare: Buffer<ArrayBuffer> | null = null

/**
 * Encodes events and rejects one after the other. Checksums are left open (`sealRecords`), so that the thread that
 * writes computes them. About 0.5 µs for an event of 1 KB.
 * @throws RangeError when a project or import job id is not an integer of 32 bits.
 */
export class RecordEncoder {
  #buffer: Buffer<ArrayBuffer> | null = null
  #view: DataView<ArrayBuffer> = emptyView
  #used = 0
  #recordCount = 0

  get recordCount(): number {
    return this.#recordCount
  }

  /** Encoded so far. */
  get bytes(): number {
    return this.#used
  }

  addEvent(event: CapturedEvent): void {
    const set = event.setJson
    const setOnce = event.setOnceJson
    const flags =
      (event.historicalMigration ? flag.historicalMigration : 0) |
      (event.protocol === 'v1' ? flag.protocolV1 : 0) |
      (event.personProcessingForcedOff ? flag.personProcessingForcedOff : 0) |
      (event.sentAtMs !== null ? flag.hasSentAt : 0) |
      (set !== null ? flag.hasSet : 0) |
      (setOnce !== null ? flag.hasSetOnce : 0)
    const head = event.token + event.uuid + event.name + event.distinctId + event.ip
    const start = this.#used
    const buffer = this.#reserve(
      headerBytes +
        bytesAtMost(head) +
        bytesAtMost(event.propertiesJson) +
        (set === null ? 0 : bytesAtMost(set)) +
        (setOnce === null ? 0 : bytesAtMost(setOnce)),
    )
    const view = this.#view
    writeHeader(view, start, kindEvent, flags, event)
    view.setUint32(start + field.ipLength, event.ip.length, true)
    view.setUint32(start + field.notes, event.notes, true)
    view.setFloat64(start + field.timestampMs, event.timestampMs, true)
    view.setFloat64(start + field.sentAtMs, event.sentAtMs ?? 0, true)
    let at = start + headerBytes
    const headBytes = buffer.write(head, at, 'utf8')
    at += headBytes
    const bodyBytes = buffer.write(event.propertiesJson, at, 'utf8')
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
    const buffer = this.#reserve(headerBytes + bytesAtMost(head) + bytesAtMost(reject.body) + bytesAtMost(source))
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

  /** Hands over everything added since the last `finish`; the encoder is empty afterwards and may be used again. */
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
    // Not a Buffer, whose `slice` would share memory where the type promises a copy.
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
    const next = current === null ? takeSpare(needed) : Buffer.allocUnsafeSlow(Math.max(needed, current.length * 2))
    if (current !== null) current.copy(next, 0, 0, this.#used)
    this.#buffer = next
    this.#view = new DataView(next.buffer, next.byteOffset, next.length)
    return next
  }
}

/**
 * Writes the project id into every record of an encoded run: bodies are encoded by a thread that knows no projects.
 * Only before `sealRecords`. In steps, since a run may have a million records.
 */
export function* assignProject(bytes: Uint8Array<ArrayBuffer>, projectId: number): Steps<void> {
  requireUint32(projectId, 'project id')
  const view = viewOf(bytes)
  let assigned = 0
  for (let at = 0; at < bytes.length; at += requireRecordBytes(view, at)) {
    view.setUint32(at + field.projectId, projectId, true)
    if (++assigned % recordsPerStep === 0) yield
  }
}

/**
 * Fills in the checksum of every record of an encoded run. The last thing done to them.
 * @returns where each record begins, and the end of the last one: a list of `recordCount + 1` places.
 * @throws RangeError for bytes that are not a run of encoded records.
 */
export function sealRecords(bytes: Uint8Array<ArrayBuffer>): number[] {
  const view = viewOf(bytes)
  const places = [0]
  for (let at = 0; at < bytes.length; ) {
    const size = requireRecordBytes(view, at)
    view.setUint32(at + field.checksum, crc32(bytes.subarray(at + checksumStart, at + size)), true)
    at += size
    places.push(at)
  }
  return places
}

/** The size of the record that begins at `at`, or 0 when the length there cannot be right. */
export function recordBytesAt(view: DataView, at: number): number {
  const left = view.byteLength - at
  if (left < headerBytes) return 0
  const size = view.getUint32(at + field.size, true)
  return size >= headerBytes && size <= left ? size : 0
}

function requireRecordBytes(view: DataView, at: number): number {
  const size = recordBytesAt(view, at)
  if (size === 0) throw new RangeError(`no record of the log begins at byte ${at} of ${view.byteLength}`)
  return size
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

function takeSpare(neededBytes: number): Buffer<ArrayBuffer> {
  const taken = spare
  if (taken !== null && taken.length >= neededBytes) {
    spare = null
    return taken
  }
  return Buffer.allocUnsafeSlow(Math.max(neededBytes, firstBufferBytes))
}

function bytesAtMost(text: string): number {
  return text.length <= unmeasuredLength ? text.length * 3 : Buffer.byteLength(text, 'utf8')
}

function requireUint32(value: number, what: string): number {
  if (value >>> 0 !== value) throw new RangeError(`${what} ${value} is not an integer of 32 bits`)
  return value
}

function viewOf(bytes: Uint8Array<ArrayBuffer>): DataView<ArrayBuffer> {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

const emptyView = new DataView(new ArrayBuffer(0))
