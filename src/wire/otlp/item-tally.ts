// Collects facts about an OpenTelemetry request: how many items it has, and which service sent it.

import type { FieldRole } from './otlp-fields.ts'

export interface OtlpCount {
  /** The number of log records, data points or spans. */
  readonly count: number
  /** `service.name` of the first resource; null when it has none. */
  readonly service: string | null
}

const serviceName = 'service.name'
/** The most bytes of a name that are shown. */
const nameBytesMax = 1024

/** Filled while a request is walked over; only the text of the service's name is decoded. */
export class ItemTally implements OtlpCount {
  count = 0
  service: string | null = null
  #resourceCount = 0
  readonly #name = { start: 0, end: 0 }
  readonly #value = { start: 0, end: 0 }

  /** Called at the start of each message. */
  begin(role: FieldRole): void {
    if (role === 'item') this.count++
    else if (role === 'resource') this.#resourceCount++
    else if (role === 'attribute') this.#name.end = this.#name.start = this.#value.end = this.#value.start = 0
  }

  noteText(role: FieldRole, start: number, end: number): void {
    const place = role === 'name' ? this.#name : this.#value
    place.start = start
    place.end = end
  }

  /** Called at the end of each attribute, whose parts may come in any order. */
  endAttribute(bytes: Uint8Array): void {
    if (this.service !== null || this.#resourceCount > 1) return
    const { start, end } = this.#name
    if (end - start !== serviceName.length || decodeText(bytes, start, end) !== serviceName) return
    const value = this.#value
    if (value.end === value.start) return
    this.service = decodeText(bytes, value.start, Math.min(value.end, value.start + nameBytesMax))
  }
}

function decodeText({ buffer, byteOffset }: Uint8Array, start: number, end: number): string {
  return Buffer.from(buffer, byteOffset + start, end - start).toString('utf8')
}
