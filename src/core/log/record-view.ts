// Reads single fields of records that are encoded but have no checksum yet: a response, a hot-key count or a warning needs
// only a few texts, and decoding a whole record would cost more.

import { edgeNote, lanes } from '../events/captured-event.ts'
import { uuidTextLength } from '../events/uuid.ts'
import { type RecordEncoder, readRecordSizeAt, type SettledVisitor } from './record-codec.ts'
import { field, flag, headerBytes, kindReject } from './record-layout.ts'

const overflowLane = lanes.indexOf('overflow')

/** Views one record of a run at a time, chosen by `moveTo`. */
export class RecordView {
  readonly #bytes: Buffer
  readonly #view: DataView
  #at = 0
  #head: string | null = null

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** @throws RangeError if no record begins at `at`. */
  moveTo(at: number): this {
    if (readRecordSizeAt(this.#view, at) === 0)
      throw new RangeError(`no record of the log begins at byte ${at} of ${this.#bytes.length}`)
    this.#at = at
    this.#head = null
    return this
  }

  /** Bytes of the whole record. */
  get size(): number {
    return this.#number(field.size)
  }

  /** '' for a reject without a uuid. */
  get uuid(): string {
    return this.#textOfHead(this.#number(field.tokenLength), this.#number(field.uuidLength))
  }

  get name(): string {
    return this.#textOfHead(this.#nameStart, this.#number(field.nameLength))
  }

  get distinctId(): string {
    return this.#textOfHead(this.#nameStart + this.#number(field.nameLength), this.#number(field.distinctIdLength))
  }

  /** For events only: when the event happened, epoch ms. */
  get timestampMs(): number {
    return this.#view.getFloat64(this.#at + field.timestampMs, true)
  }

  /** When the record was accepted, epoch ms. */
  get capturedAtMs(): number {
    return this.#view.getFloat64(this.#at + field.capturedAtMs, true)
  }

  /** Whether the record belongs to an import; imports are never charged. */
  get isImport(): boolean {
    return (this.#view.getUint8(this.#at + field.flags) & flag.historicalMigration) !== 0
  }

  /** For rejects only: the field at fault, or ''. */
  get field(): string {
    const distinctIdEnd = this.#nameStart + this.#number(field.nameLength) + this.#number(field.distinctIdLength)
    return this.#textOfHead(distinctIdEnd + this.#number(field.ipLength), this.#number(field.fieldLength))
  }

  /** Copies the ASCII text of the uuid. Only for a record that has a uuid. */
  copyUuid(target: Uint8Array, at: number): void {
    // A token is ASCII, so its length in UTF-16 units equals its length in bytes.
    const start = this.#at + headerBytes + this.#number(field.tokenLength)
    this.#bytes.copy(target, at, start, start + uuidTextLength)
  }

  /** Adds the record to another run. @param settled its settled visitor; null to add the record unchanged. */
  copyTo(encoder: RecordEncoder, settled: SettledVisitor | null): void {
    if (settled === null) encoder.addRecord(this.#bytes, this.#at)
    else encoder.addSettled(this.#bytes, this.#at, settled)
  }

  /** For events only: switches person processing off, notes that, and moves an event of the main lane to `overflow`. */
  switchPersonsOff(): void {
    const flags = this.#view.getUint8(this.#at + field.flags) | flag.personProcessingForcedOff
    this.#view.setUint8(this.#at + field.flags, flags)
    const notes = this.#number(field.notes) | edgeNote.personsSwitchedOff
    this.#view.setUint32(this.#at + field.notes, notes, true)
    const isMain = lanes[this.#view.getUint8(this.#at + field.lane)] === 'main'
    if (isMain) this.#view.setUint8(this.#at + field.lane, overflowLane)
  }

  get #nameStart(): number {
    return this.#number(field.tokenLength) + this.#number(field.uuidLength)
  }

  #number(place: number): number {
    return this.#view.getUint32(this.#at + place, true)
  }

  /** Lengths in the head count UTF-16 units, which equal bytes only if the whole head is ASCII. */
  #textOfHead(start: number, length: number): string {
    const headStart = this.#at + headerBytes
    const headBytes = this.#number(field.headBytes)
    const isReject = this.#view.getUint8(this.#at + field.kind) === kindReject
    const units =
      this.#nameStart +
      this.#number(field.nameLength) +
      this.#number(field.distinctIdLength) +
      this.#number(field.ipLength) +
      (isReject ? this.#number(field.fieldLength) : 0)
    if (units === headBytes) return this.#bytes.toString('latin1', headStart + start, headStart + start + length)
    this.#head ??= this.#bytes.toString('utf8', headStart, headStart + headBytes)
    return this.#head.slice(start, start + length)
  }
}
