// Counts the items of an OpenTelemetry request in protobuf by walking over its bytes; nothing is built from them. Only
// the messages of `otlp-fields.ts` are entered, so the depth is bounded by that table.

import { ItemTally, type OtlpCount } from './item-tally.ts'
import { type OtlpField, requestFields } from './otlp-fields.ts'
import type { OtlpSignal } from './otlp-paths.ts'

/** @returns null when the bytes are not protobuf. */
export function countOtlpProtobuf(bytes: Uint8Array, signal: OtlpSignal): OtlpCount | null {
  const walk = new ProtobufWalk(bytes)
  return walk.message(bytes.length, requestFields[signal]) ? walk.tally : null
}

const varintBytesMax = 10
/** Every tag is below this: the number of a field has 29 bits, and the type of its value has 3. */
const tagMax = 2 ** 32
const wireTypes = { varint: 0, fixed64: 1, delimited: 2, fixed32: 5 } as const

class ProtobufWalk {
  readonly tally = new ItemTally()
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /**
   * Walks to the end of a message; false when it is malformed. A message with groups counts as malformed, since
   * OpenTelemetry has none.
   */
  message(end: number, fields: readonly OtlpField[]): boolean {
    while (this.#at < end) {
      const tag = this.#varint(end)
      if (tag < 8 || tag >= tagMax) return false
      if (!this.#value(tag % 8, Math.floor(tag / 8), end, fields)) return false
    }
    return true
  }

  #value(type: number, number: number, end: number, fields: readonly OtlpField[]): boolean {
    switch (type) {
      case wireTypes.varint:
        return this.#varint(end) >= 0
      case wireTypes.fixed64:
        return this.#skip(8, end)
      case wireTypes.fixed32:
        return this.#skip(4, end)
      case wireTypes.delimited: {
        const length = this.#varint(end)
        if (length < 0 || length > end - this.#at) return false
        const field = fields.find(known => known.number === number)
        return field === undefined ? this.#skip(length, end) : this.#known(field, this.#at + length)
      }
      default:
        return false
    }
  }

  #known({ inside, role }: OtlpField, end: number): boolean {
    if (inside === 'text') {
      this.tally.noteText(role, this.#at, end)
      this.#at = end
      return true
    }
    this.tally.begin(role)
    if (role === 'item') this.#at = end
    else if (!this.message(end, inside)) return false
    if (role === 'attribute') this.tally.endAttribute(this.#bytes)
    return true
  }

  #skip(length: number, end: number): boolean {
    this.#at += length
    return this.#at <= end
  }

  /**
   * Reads an integer. It is rounded above 2^53, where it is neither a valid tag nor a length that fits; -1 when it does not
   * end.
   */
  #varint(end: number): number {
    const last = Math.min(end, this.#at + varintBytesMax)
    let value = 0
    for (let factor = 1; this.#at < last; factor *= 128) {
      const byte = this.#bytes[this.#at++]!
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
    return -1
  }
}
