// Checks a structure of Thrift's compact protocol before hyparquet reads it: hyparquet allocates each list as long as it
// claims to be, so a few bytes could exhaust memory. Source: thrift-compact-protocol.md of apache/thrift.

/** Parquet's structures nest less than ten levels deep. */
const depthMax = 64
const longList = 15
const types = { stop: 0, true: 1, false: 2, byte: 3, i16: 4, i32: 5, i64: 6, double: 7, binary: 8, list: 9, struct: 12 }

/**
 * @param from offset of the structure.
 * @throws Error when the structure does not end within the bytes.
 */
export function checkThrift(bytes: Uint8Array, from = 0): void {
  let at = from
  skipStruct(0)

  function next(): number {
    if (at >= bytes.length) throw new Error('a part of its metadata is cut off')
    return bytes[at++]!
  }

  function varint(): number {
    let value = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = next()
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw new Error('a number in its metadata has more than ten bytes')
  }

  function skipBytes(count: number): void {
    at += count
    if (at > bytes.length) throw new Error('a part of its metadata exceeds its bounds')
  }

  function skipStruct(depth: number): void {
    for (let field = next(); (field & 0x0f) !== types.stop; field = next()) {
      if (field >> 4 === 0) varint()
      skipValue(field & 0x0f, depth)
    }
  }

  function skipList(depth: number): void {
    const head = next()
    const type = head & 0x0f
    const count = head >> 4 === longList ? varint() : head >> 4
    // Within a list, booleans take a byte too.
    if (count > bytes.length - at) throw new Error(`a list in its metadata claims to hold ${count} values`)
    for (let left = count; left > 0; left--)
      if (type === types.true || type === types.false) next()
      else skipValue(type, depth)
  }

  function skipValue(type: number, depth: number): void {
    if (depth > depthMax) throw new Error(`its metadata nests more than ${depthMax} levels deep`)
    if (type === types.byte) next()
    else if (type === types.i16 || type === types.i32 || type === types.i64) varint()
    else if (type === types.double) skipBytes(8)
    else if (type === types.binary) skipBytes(varint())
    else if (type === types.list) skipList(depth + 1)
    else if (type === types.struct) skipStruct(depth + 1)
    else if (type !== types.true && type !== types.false)
      throw new Error(`its metadata has a value of the unknown type ${type}`)
  }
}
