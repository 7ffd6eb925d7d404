// Base64 in capture bodies that do not announce it: recognised by its first bytes, decoded strictly.
// Source: docs/wire/ingestion.md 1.4.

const lookedAtBytes = 128

/** Whether bytes are a non-empty number of groups of four, with only base64 characters in the first 128 bytes. */
export function looksLikeBase64(bytes: Uint8Array, alphabet: 'strict' | 'blanks allowed' = 'strict'): boolean {
  if (bytes.length === 0 || bytes.length % 4 !== 0) return false
  const end = Math.min(bytes.length, lookedAtBytes)
  for (let at = 0; at < end; at++) {
    const byte = bytes[at]!
    if (!isBase64Byte(byte) && !(byte === blank && alphabet === 'blanks allowed')) return false
  }
  return true
}

/** The decoded bytes; null unless all of it is padded base64 in the standard alphabet. */
export function decodeBase64(bytes: Buffer): Buffer | null {
  try {
    const decoded = Uint8Array.fromBase64(bytes.toString('latin1'), { lastChunkHandling: 'strict' })
    return Buffer.from(decoded.buffer, decoded.byteOffset, decoded.length)
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

function isBase64Byte(byte: number): boolean {
  return (
    (byte >= 0x41 && byte <= 0x5a) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    (byte >= 0x2b && byte <= 0x39 && byte !== 0x2c && byte !== 0x2d && byte !== 0x2e) ||
    byte === 0x3d
  )
}

const blank = 0x20
