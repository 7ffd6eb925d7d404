// Makes a small LZString base64 text that unpacks to a very long one, without building the long one.

/** @returns the result of `LZString.compressToBase64` for at least `unitCount` times `x`. */
export function lz64Bomb(unitCount: number): string {
  const bits: number[] = []
  const push = (value: number, bitCount: number) => {
    for (let bit = 0; bit < bitCount; bit++) bits.push((value >> bit) & 1)
  }
  push(0, 2)
  push('x'.charCodeAt(0), 8)
  // Each code refers to the entry that it completes, which is one unit longer than the previous one.
  let codeBits = 3
  for (let written = 1, code = 4; written < unitCount; written += code - 2, code++) {
    push(code, codeBits)
    if (code === 2 ** codeBits - 1) codeBits++
  }
  push(2, codeBits)
  while (bits.length % 24 !== 0) bits.push(0)
  const bytes = Buffer.alloc(bits.length / 8)
  for (const [at, bit] of bits.entries()) bytes[at >> 3]! |= bit << (7 - (at & 7))
  return bytes.toString('base64')
}
