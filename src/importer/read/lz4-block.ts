// Decompresses LZ4 blocks, which Node cannot. Source: lz4_Block_format.md of lz4/lz4; for the older codec of Parquet,
// Compression.md of apache/parquet-format.

const matchBytesMin = 4
const lengthMore = 15
/** Before each Hadoop block: its unpacked and its packed size. */
const hadoopHeaderBytes = 8

/**
 * @param outputBytes unpacked size of the block.
 * @throws RangeError for an invalid block.
 */
export function unpackLz4(input: Uint8Array, outputBytes: number): Uint8Array {
  const output = new Uint8Array(outputBytes)
  let from = 0
  let to = 0
  const nextLength = (length: number): number => {
    if (length < lengthMore) return length
    for (;;) {
      const byte = input[from++]
      if (byte === undefined) throw createDamageError()
      length += byte
      if (byte < 255) return length
    }
  }
  while (from < input.length) {
    const token = input[from++]!
    const literalBytes = nextLength(token >> 4)
    if (from + literalBytes > input.length || to + literalBytes > outputBytes) throw createDamageError()
    output.set(input.subarray(from, from + literalBytes), to)
    from += literalBytes
    to += literalBytes
    // The last sequence consists of literals only.
    if (from === input.length) break
    const distance = input[from]! | (input[from + 1]! << 8)
    from += 2
    const matchEnd = to + nextLength(token & 15) + matchBytesMin
    if (distance === 0 || distance > to || matchEnd > outputBytes) throw createDamageError()
    // Byte by byte, since a match may overlap its own output.
    for (; to < matchEnd; to++) output[to] = output[to - distance]!
  }
  if (to !== outputBytes) throw createDamageError()
  return output
}

/** Parquet's deprecated LZ4 codec: blocks in Hadoop frames, or from some writers a block without a frame. */
export function unpackHadoopLz4(input: Uint8Array, outputBytes: number): Uint8Array {
  const view = new DataView(input.buffer, input.byteOffset, input.length)
  const output = new Uint8Array(outputBytes)
  let to = 0
  for (let from = 0; from < input.length; ) {
    const isFramed = from + hadoopHeaderBytes <= input.length
    const givenBytes = isFramed ? view.getUint32(from) : 0
    const ownBytes = isFramed ? view.getUint32(from + 4) : 0
    from += hadoopHeaderBytes
    if (!isFramed || to + givenBytes > outputBytes || from + ownBytes > input.length)
      return unpackLz4(input, outputBytes)
    output.set(unpackLz4(input.subarray(from, from + ownBytes), givenBytes), to)
    to += givenBytes
    from += ownBytes
  }
  return output
}

function createDamageError(): RangeError {
  return new RangeError('a block of LZ4 is damaged')
}
