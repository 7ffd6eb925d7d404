// Takes events out of a run of encoded records, looking at no more of each than the question needs: whether an event may
// stay is sometimes known only after a thread has encoded it, and decoding a run costs more than reading it.

import { edgeNote, type Lane, lanes } from '../events/captured-event.ts'
import { type EncodedRecords, recordBytesAt } from './record-codec.ts'
import { field, flag, headerBytes, kindEvent } from './record-layout.ts'

/** One event of a run; good until the next one is looked at. */
export interface EventGlance {
  readonly lane: Lane
  readonly historicalMigration: boolean
  readonly name: string
  readonly uuid: string
  readonly distinctId: string
  /** Writes into the record: person processing is off, which it notes, and an event of the main lane is in `overflow`. */
  switchPersonsOff(): void
  /** Whether its properties have this key, at their top level. */
  hasProperty(key: string): boolean
}

const overflowLane = lanes.indexOf('overflow')

/** How much is looked at between two steps: about a millisecond. */
const recordsPerStep = 256
const parsedBytesPerStep = 64 * 1024

/**
 * @param records not sealed yet, and given away: what is kept moves together in place. Records that are no events stay.
 * @param keeps asked of each event, in order.
 * @returns in steps, since a run may be as long as a request: what is kept, `records` itself when that is all of it, or null
 *   when nothing is.
 * @throws RangeError for bytes that are not a run of encoded records.
 */
export function* filterEvents(
  records: EncodedRecords,
  keeps: (event: EventGlance) => boolean,
): Generator<void, EncodedRecords | null> {
  const { bytes } = records
  const glance = new RecordGlance(bytes)
  let kept = 0
  let keptCount = 0
  let looked = 0
  for (let at = 0; at < bytes.length; ) {
    const size = glance.moveTo(at)
    if (!glance.isEvent || keeps(glance)) {
      if (kept !== at) bytes.copyWithin(kept, at, at + size)
      kept += size
      keptCount++
    }
    at += size
    looked++
    if (looked % recordsPerStep === 0 || glance.parsedBytes > parsedBytesPerStep) {
      glance.parsedBytes = 0
      yield
    }
  }
  if (kept === bytes.length) return records
  return keptCount === 0 ? null : { bytes: shortened(bytes, kept), recordCount: keptCount }
}

/** A run that has its memory for itself keeps it so, and can be transferred. */
function shortened(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  const isWhole = bytes.byteOffset === 0 && bytes.length === bytes.buffer.byteLength
  return isWhole ? new Uint8Array(bytes.buffer.transfer(length)) : bytes.subarray(0, length)
}

class RecordGlance implements EventGlance {
  /** Bytes of properties parsed since this was last set to 0. */
  parsedBytes = 0
  readonly #bytes: Buffer
  readonly #view: DataView
  #at = 0
  #head: string | null = null

  constructor(bytes: Uint8Array<ArrayBuffer>) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** @returns the size of the record there. */
  moveTo(at: number): number {
    const size = recordBytesAt(this.#view, at)
    if (size === 0) throw new RangeError(`no record of the log begins at byte ${at} of ${this.#bytes.length}`)
    this.#at = at
    this.#head = null
    return size
  }

  get isEvent(): boolean {
    return this.#view.getUint8(this.#at + field.kind) === kindEvent
  }

  get lane(): Lane {
    return lanes[this.#view.getUint8(this.#at + field.lane)]!
  }

  get historicalMigration(): boolean {
    return (this.#view.getUint8(this.#at + field.flags) & flag.historicalMigration) !== 0
  }

  get name(): string {
    const start = this.#number(field.tokenLength) + this.#number(field.uuidLength)
    return this.#ofHead(start, this.#number(field.nameLength))
  }

  get uuid(): string {
    return this.#ofHead(this.#number(field.tokenLength), this.#number(field.uuidLength))
  }

  get distinctId(): string {
    const start = this.#number(field.tokenLength) + this.#number(field.uuidLength) + this.#number(field.nameLength)
    return this.#ofHead(start, this.#number(field.distinctIdLength))
  }

  switchPersonsOff(): void {
    const flags = this.#view.getUint8(this.#at + field.flags) | flag.personProcessingForcedOff
    this.#view.setUint8(this.#at + field.flags, flags)
    const notes = this.#number(field.notes) | edgeNote.personsSwitchedOff
    this.#view.setUint32(this.#at + field.notes, notes, true)
    if (this.lane === 'main') this.#view.setUint8(this.#at + field.lane, overflowLane)
  }

  hasProperty(key: string): boolean {
    const start = this.#at + headerBytes + this.#number(field.headBytes)
    const properties = this.#bytes.subarray(start, start + this.#number(field.bodyBytes))
    // A key that is not written as it is has an escape in it.
    if (!properties.includes(`"${key}"`) && !properties.includes('\\')) return false
    this.parsedBytes += properties.length
    return Object.hasOwn(JSON.parse(properties.toString('utf8')) as object, key)
  }

  #number(place: number): number {
    return this.#view.getUint32(this.#at + place, true)
  }

  /** Places in the head count UTF-16 units: bytes, where all of it is ASCII. */
  #ofHead(start: number, length: number): string {
    const headStart = this.#at + headerBytes
    const headBytes = this.#number(field.headBytes)
    const units =
      this.#number(field.tokenLength) +
      this.#number(field.uuidLength) +
      this.#number(field.nameLength) +
      this.#number(field.distinctIdLength) +
      this.#number(field.ipLength)
    if (units === headBytes) return this.#bytes.toString('latin1', headStart + start, headStart + start + length)
    this.#head ??= this.#bytes.toString('utf8', headStart, headStart + headBytes)
    return this.#head.slice(start, start + length)
  }
}
