// Finds a key of JSON text among a few known ones without making a string of it: length and second byte are enough to
// exclude nearly all other keys. Many keys begin with `$`.

import { backslash, hexUnit, lowerU, quote, skipPlain, skipString, throwNotWalkable } from './json-tokens.ts'

/** A key in ASCII; no other key of the table has the same length and second byte. */
interface KnownKey<Name extends string> {
  readonly name: Name
  readonly bytes: Uint8Array
}

export class KeyTable<Name extends string> {
  readonly #keys: (KnownKey<Name> | undefined)[]
  readonly #lengthMax: number

  /** @throws Error when two keys have the same length and second byte, or one has no second byte. */
  constructor(names: readonly Name[]) {
    this.#lengthMax = Math.max(...names.map(({ length }) => length))
    this.#keys = new Array((this.#lengthMax + 1) * byteValues).fill(undefined)
    for (const name of names) {
      const bytes = Buffer.from(name)
      if (bytes.length < 2) throw new Error(`${name} is too short`)
      const place = tableIndex(bytes.length, bytes[1]!)
      if (this.#keys[place] !== undefined) throw new Error(`${name} and ${this.#keys[place].name} share a place`)
      this.#keys[place] = { name, bytes }
    }
  }

  /**
   * @param start the opening quote of a key that is written without escapes.
   * @param end the offset after its closing quote.
   * @returns the known key at that place; null for any other.
   */
  find(json: Uint8Array, start: number, end: number): Name | null {
    const length = end - start - 2
    if (length > this.#lengthMax) return null
    const second = json[start + 2]!
    const known = second < byteValues ? this.#keys[tableIndex(length, second)] : undefined
    if (known === undefined) return null
    for (let index = 0; index < length; index++) if (json[start + 1 + index] !== known.bytes[index]) return null
    return known.name
  }
}

/**
 * Skips a key like `skipString`, but throws `NotWalkable` if the key writes an ASCII character as `\u…`, since it may
 * be a known key. Encoders write only other characters this way.
 * @param start the opening quote.
 */
export function skipKey(json: Uint8Array, start: number): number {
  let at = skipPlain(json, start + 1)
  if (json[at] === quote) return at + 1
  const end = skipString(json, start)
  for (; at < end; at++)
    if (json[at] === backslash && json[++at] === lowerU && hexUnit(json, at + 1) < 0x80) throwNotWalkable()
  return end
}

/** The number of ASCII bytes. */
const byteValues = 128

function tableIndex(length: number, second: number): number {
  return length * byteValues + second
}
