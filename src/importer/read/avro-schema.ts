// Turns the schema of an Avro file into a reader that returns its values as JSON. Source: Apache Avro 1.12 specification.

import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, setOwnValue } from '#core/json.ts'
import { recordBytesMax, recordValuesMax } from './split-records.ts'
import {
  timeDigits,
  toBytesValue,
  toDateValue,
  toDecimalValue,
  toDoubleValue,
  toFloatValue,
  toIntegerValue,
  toTimeOfDayValue,
  toTimestampValue,
  toUuidValue,
} from './typed-records.ts'

/** Bounds the JSON of a record, which repeats a name with every value, whereas the schema contains each name once. */
const recordNameCharsMax = recordBytesMax

/** Reads the binary encoding sequentially. */
export class AvroCursor {
  readonly #bytes: Buffer
  /** Bytes read so far. */
  at = 0
  #valuesLeft = recordValuesMax
  #nameCharsLeft = recordNameCharsMax

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.at === this.#bytes.length
  }

  beginRecord(): void {
    this.#valuesLeft = recordValuesMax
    this.#nameCharsLeft = recordNameCharsMax
  }

  /**
   * Values such as null take no bytes, so the size of a record does not limit how many values it can claim.
   * @throws RangeError when the record has too many values, including these.
   */
  countValues(count: number): void {
    this.#valuesLeft -= count
    if (this.#valuesLeft < 0) throw new RangeError(`a record claims more than ${recordValuesMax} values`)
  }

  /** @throws RangeError when the names in the record, including these, are too long in total. */
  countNames(chars: number): void {
    this.#nameCharsLeft -= chars
    if (this.#nameCharsLeft < 0) throw new RangeError(`a record repeats more than ${recordNameCharsMax} bytes of names`)
  }

  /** @throws RangeError when fewer bytes remain. */
  bytes(count: number): Buffer {
    const end = this.at + count
    // Also checks for numbers that are not lengths, since a schema may give any number as the size of a value.
    if (!(Number.isSafeInteger(count) && count >= 0 && end <= this.#bytes.length))
      throw new RangeError('a value is longer than what holds it')
    const bytes = this.#bytes.subarray(this.at, end)
    this.at = end
    return bytes
  }

  /** Reads an integer in zigzag encoding, seven bits per byte. */
  long(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes(1)[0]!
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return (value >> 1n) ^ -(value & 1n)
    }
    throw new RangeError('an integer has more than ten bytes')
  }

  /** Reads a length or an index. */
  size(): number {
    return Number(this.long())
  }

  /** Calls `readItem` for each item of a list or a map. Items come in blocks, the last of which is empty. */
  forEachItem(readItem: () => void): void {
    for (let count = this.size(); count !== 0; count = this.size()) {
      // After a negative count comes the size of the block, which is skipped.
      if (count < 0) this.long()
      this.countValues(Math.abs(count))
      for (let left = Math.abs(count); left > 0; left--) readItem()
    }
  }
}

export type AvroReader = (cursor: AvroCursor) => JsonValue

const primitives: ReadonlyMap<string, AvroReader> = new Map<string, AvroReader>([
  ['null', () => null],
  ['boolean', cursor => cursor.bytes(1)[0] === 1],
  ['int', cursor => toIntegerValue(cursor.long())],
  ['long', cursor => toIntegerValue(cursor.long())],
  ['float', cursor => toFloatValue(cursor.bytes(4).readFloatLE())],
  ['double', cursor => toDoubleValue(cursor.bytes(8).readDoubleLE())],
  ['bytes', cursor => toBytesValue(cursor.bytes(cursor.size()))],
  ['string', cursor => cursor.bytes(cursor.size()).toString()],
])

/** @throws Error for an invalid schema. */
export function createAvroReader(schema: JsonValue): AvroReader {
  const named = new Map<string, AvroReader>()
  return createReader(schema, '')

  function createReader(schema: JsonValue, namespace: string): AvroReader {
    if (typeof schema === 'string') return primitives.get(schema) ?? createNamedReader(schema, namespace)
    if (Array.isArray(schema)) {
      const readers = schema.map(each => createReader(each, namespace))
      return cursor => requireItem(readers, cursor.size(), 'type of a union')(cursor)
    }
    if (!isJsonObject(schema)) throw new Error('a part of the schema is not a type')
    const logical = getOwnValue(schema, 'logicalType')
    const reader = typeof logical === 'string' ? createLogicalReader(logical, schema) : null
    if (reader !== null) return createRegisteredReader(schema, namespace, () => reader)
    switch (getOwnValue(schema, 'type')) {
      case 'record':
      case 'error':
        return createRegisteredReader(schema, namespace, inner => createRecordReader(schema, inner))
      case 'enum':
        return createRegisteredReader(schema, namespace, () => createEnumReader(requireList(schema, 'symbols')))
      case 'fixed':
        return createRegisteredReader(
          schema,
          namespace,
          () => cursor => toBytesValue(cursor.bytes(requireSize(schema))),
        )
      case 'array':
        return createArrayReader(createReader(requireValue(schema, 'items'), namespace))
      case 'map':
        return createMapReader(createReader(requireValue(schema, 'values'), namespace))
      default:
        return createReader(requireValue(schema, 'type'), namespace)
    }
  }

  /** Types can be recursive, so a name is only resolved when a value is read. */
  function createNamedReader(type: string, namespace: string): AvroReader {
    const names = type.includes('.') || namespace === '' ? [type] : [`${namespace}.${type}`, type]
    return cursor => {
      const reader = names.map(name => named.get(name)).find(each => each !== undefined)
      if (reader === undefined) throw new Error(`the schema has no type ${type}`)
      return reader(cursor)
    }
  }

  function createRegisteredReader(
    schema: JsonObject,
    outer: string,
    create: (namespace: string) => AvroReader,
  ): AvroReader {
    const name = getOwnValue(schema, 'name')
    if (typeof name !== 'string') return create(outer)
    const given = getOwnValue(schema, 'namespace')
    const own = name.includes('.') ? name.slice(0, name.lastIndexOf('.')) : typeof given === 'string' ? given : outer
    const reader = create(own)
    named.set(name.includes('.') || own === '' ? name : `${own}.${name}`, reader)
    return reader
  }

  function createRecordReader(schema: JsonObject, namespace: string): AvroReader {
    const fields = requireList(schema, 'fields').map(field => {
      if (!isJsonObject(field)) throw new Error('a field of the schema is not an object')
      return [String(requireValue(field, 'name')), createReader(requireValue(field, 'type'), namespace)] as const
    })
    const nameChars = fields.reduce((sum, [name]) => sum + name.length, 0)
    return cursor => {
      const record: JsonObject = {}
      cursor.countValues(fields.length)
      cursor.countNames(nameChars)
      for (const [name, read] of fields) setOwnValue(record, name, read(cursor))
      return record
    }
  }
}

function createEnumReader(symbols: readonly JsonValue[]): AvroReader {
  return cursor => {
    const symbol = requireItem(symbols, cursor.size(), 'symbol')
    cursor.countNames(String(symbol).length)
    return symbol
  }
}

function createArrayReader(read: AvroReader): AvroReader {
  return cursor => {
    const items: JsonValue[] = []
    cursor.forEachItem(() => items.push(read(cursor)))
    return items
  }
}

function createMapReader(read: AvroReader): AvroReader {
  return cursor => {
    const map: JsonObject = {}
    cursor.forEachItem(() => setOwnValue(map, cursor.bytes(cursor.size()).toString(), read(cursor)))
    return map
  }
}

/** @returns null for a logical type that is ignored here: the underlying type is used. */
function createLogicalReader(logical: string, schema: JsonObject): AvroReader | null {
  const type = getOwnValue(schema, 'type')
  const [, kind, unit] = /^(local-timestamp|timestamp|time)-(millis|micros|nanos)$/.exec(logical) ?? []
  if (kind !== undefined) {
    const digits = timeDigits[unit!.toUpperCase()]!
    if (kind === 'time') return cursor => toTimeOfDayValue(cursor.long(), digits)
    return cursor => toTimestampValue(cursor.long(), digits, kind === 'timestamp')
  }
  if (logical === 'date') return cursor => toDateValue(Number(cursor.long()))
  if (logical === 'uuid' && type === 'fixed') return cursor => toUuidValue(cursor.bytes(16))
  if (logical !== 'decimal') return null
  const scale = Number(getOwnValue(schema, 'scale') ?? 0)
  if (type === 'fixed') return cursor => toDecimalValue(cursor.bytes(requireSize(schema)), scale)
  return cursor => toDecimalValue(cursor.bytes(cursor.size()), scale)
}

function requireItem<T>(list: readonly T[], index: number, what: string): T {
  const found = list[index]
  if (found === undefined) throw new Error(`there is no ${what} ${index}`)
  return found
}

function requireValue(schema: JsonObject, key: string): JsonValue {
  const value = getOwnValue(schema, key)
  if (value === undefined) throw new Error(`the schema lacks ${key}`)
  return value
}

function requireList(schema: JsonObject, key: string): readonly JsonValue[] {
  const value = requireValue(schema, key)
  if (!Array.isArray(value)) throw new Error(`the schema has no list in ${key}`)
  return value
}

function requireSize(schema: JsonObject): number {
  return Number(requireValue(schema, 'size'))
}
