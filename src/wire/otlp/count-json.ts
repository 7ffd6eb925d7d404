// Counts the items of an OpenTelemetry request in JSON by walking over its bytes; nothing is built from them. Escapes of
// lone surrogates are accepted, unlike in events: logs are full of truncated texts, and no text is kept.

import { ascii } from '#core/ascii.ts'
import {
  appendEndByte,
  NotWalkable,
  readFirstMember,
  readNextElement,
  readNextMember,
  skipAnyString,
  skipBlanks,
  skipColon,
  skipValue,
  throwNotWalkable,
} from '../bytes/json-walk.ts'
import { ItemTally, type OtlpCount } from './item-tally.ts'
import { isStructuralField, type OtlpField, requestFields } from './otlp-fields.ts'
import type { OtlpSignal } from './otlp-paths.ts'

const { lineFeed, quote, openBracket, closeBracket, lowerN, openBrace, closeBrace } = ascii

/** How many brackets and braces may be open at once. */
export const otlpDepthMax = 64

/**
 * @returns null when the bytes are not JSON, or not a request of this signal. Logs may be several objects, one per line.
 */
export function countOtlpJson(bytes: Uint8Array, signal: OtlpSignal): OtlpCount | null {
  const walk = new JsonWalk(appendEndByte(bytes))
  try {
    let at = 0
    do at = walk.request(at, requestFields[signal])
    while (at < bytes.length && signal === 'logs' && walk.isAfterLineBreak(at))
    return at === bytes.length ? walk.tally : null
  } catch (error) {
    if (error instanceof NotWalkable) return null
    throw error
  }
}

class JsonWalk {
  readonly tally = new ItemTally()
  readonly #json: Uint8Array

  constructor(json: Uint8Array) {
    this.#json = json
  }

  /** Returns the offset after an object and the following blanks. */
  request(start: number, fields: readonly OtlpField[]): number {
    const at = skipBlanks(this.#json, start)
    return skipBlanks(this.#json, this.#object(at, otlpDepthMax, fields))
  }

  isAfterLineBreak(at: number): boolean {
    let before = at - 1
    while (this.#json[before]! <= 0x20 && this.#json[before] !== lineFeed) before--
    return this.#json[before] === lineFeed
  }

  #object(start: number, depthMax: number, fields: readonly OtlpField[]): number {
    const json = this.#json
    if (json[start] !== openBrace || depthMax === 0) throwNotWalkable()
    let at = readFirstMember(json, start)
    while (json[at] !== closeBrace) {
      const keyEnd = skipAnyString(json, at)
      const value = skipColon(json, keyEnd)
      const field = this.#fieldOf(at + 1, keyEnd - 1, fields)
      const end = field === undefined ? this.#any(value, depthMax - 1) : this.#known(field, value, depthMax - 1)
      at = readNextMember(json, end)
    }
    return at + 1
  }

  #fieldOf(start: number, end: number, fields: readonly OtlpField[]): OtlpField | undefined {
    const isKey = ({ key }: OtlpField) =>
      key.length === end - start && key.every((byte, index) => byte === this.#json[start + index])
    return fields.find(isKey)
  }

  #known(field: OtlpField, start: number, depthMax: number): number {
    const json = this.#json
    if (json[start] === lowerN) return this.#any(start, depthMax)
    if (json[start] !== getOpeningByte(field))
      return isStructuralField(field) ? throwNotWalkable() : this.#any(start, depthMax)
    if (field.inside === 'text') {
      const end = skipAnyString(json, start)
      this.tally.noteText(field.role, start + 1, end - 1)
      return end
    }
    if (!field.isList) return this.#message(field, field.inside, start, depthMax)
    return this.#list(start, depthMax, at =>
      isStructuralField(field) || json[at] === openBrace
        ? this.#message(field, field.inside as readonly OtlpField[], at, depthMax - 1)
        : this.#any(at, depthMax - 1),
    )
  }

  #message({ role }: OtlpField, inside: readonly OtlpField[], start: number, depthMax: number): number {
    this.tally.begin(role)
    const end = this.#object(start, depthMax, inside)
    if (role === 'attribute') this.tally.endAttribute(this.#json)
    return end
  }

  #list(start: number, depthMax: number, element: (at: number) => number): number {
    const json = this.#json
    if (depthMax === 0) throwNotWalkable()
    let at = skipBlanks(json, start + 1)
    while (json[at] !== closeBracket) at = readNextElement(json, element(at))
    return at + 1
  }

  #any(start: number, depthMax: number): number {
    switch (this.#json[start]) {
      case openBrace:
        return this.#object(start, depthMax, nothingKnown)
      case openBracket:
        return this.#list(start, depthMax, at => this.#any(at, depthMax - 1))
      case quote:
        return skipAnyString(this.#json, start)
      default:
        return skipValue(this.#json, start)
    }
  }
}

function getOpeningByte({ inside, isList }: OtlpField): number {
  return isList ? openBracket : inside === 'text' ? quote : openBrace
}

const nothingKnown: readonly OtlpField[] = []
