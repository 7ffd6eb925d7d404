// Decompression with a bound on what comes out, so that a small body cannot become a large one: the output never grows
// past the bound, whatever the input says of itself.

import {
  brotliDecompressSync,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  type ZlibOptions,
  zstdDecompressSync,
} from 'node:zlib'

export type Inflated = { kind: 'bytes'; bytes: Buffer } | { kind: 'too_large' } | { kind: 'broken' }

/**
 * How much a compressed body may stand for: up to `freeBytes`, or `timesSent` what was sent. What comes out is looked at byte by
 * byte, so its sender has to send something for that work. lz64, the slowest and only sent by browsers without gzip, gets what
 * real batches need, which shrink to a twentieth; the others get what gzip can reach at most, so that 200 bytes of brotli do not
 * take a thread a second.
 */
const expansion = {
  stream: { freeBytes: 25 * 1024 * 1024, timesSent: 1_032 },
  lz64: { freeBytes: 4 * 1024 * 1024, timesSent: 50 },
} as const

/** @param outputBytesMax bound of the caller, never exceeded. */
export function expandedBytesMax(sentBytes: number, outputBytesMax: number, form: keyof typeof expansion): number {
  const { freeBytes, timesSent } = expansion[form]
  return Math.min(outputBytesMax, Math.max(freeBytes, sentBytes * timesSent))
}

const chunkBytesMin = 1024
const gzipTrailerBytes = 4

export function isGzip(bytes: Uint8Array): boolean {
  return bytes.length > 2 && startsAsGzip(bytes) && bytes[2] === 0x08
}

export function startsAsGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

/**
 * Gunzips. The trailer's size (of the last member, modulo 2^32) sizes the output buffer, so that it is filled in one
 * go; a wrong one only costs further buffers.
 */
export function gunzip(bytes: Buffer, outputBytesMax: number): Inflated {
  const claimed = bytes.length > gzipTrailerBytes ? bytes.readUInt32LE(bytes.length - gzipTrailerBytes) : 0
  // One byte more than the output, or another round is needed to see the end.
  const chunkSize = Math.min(
    Math.max(claimed + 1, chunkBytesMin),
    outputBytesMax + 1,
    bytes.length * 64 + chunkBytesMin,
  )
  return inflateWith(() => {
    const { buffer, engine } = gunzipWithEngine(bytes, { maxOutputLength: outputBytesMax, chunkSize, info: true })
    // Its native half keeps the stream object, and with it the output, until the next full garbage collection: hundreds of
    // large outputs would bring that on. Should the field go by another name one day, this does nothing.
    engine._outBuffer = null
    return buffer
  })
}

type WithEngine = (
  bytes: Buffer,
  options: ZlibOptions,
) => { buffer: Buffer; engine: { _outBuffer: unknown; readonly bytesWritten: number } }
/** What `info` makes of the answer; Node's types leave it out. */
const gunzipWithEngine = gunzipSync as unknown as WithEngine
const inflateRawWithEngine = inflateRawSync as unknown as WithEngine

/** What a `Content-Encoding` other than gzip names; `broken` also when it names none of them. */
export function inflateEncoding(encoding: string, bytes: Buffer, outputBytesMax: number): Inflated {
  const options = { maxOutputLength: outputBytesMax }
  switch (encoding) {
    case 'br':
      return inflateWith(() => brotliDecompressSync(bytes, options))
    case 'zstd':
      return inflateWith(() => zstdDecompressSync(bytes, options))
    case 'deflate':
      return bytes[0] === 0x78 ? inflateWith(() => inflateSync(bytes, options)) : inflateRaw(bytes, options)
    default:
      return { kind: 'broken' }
  }
}

/** Without a checksum anything may decode, JSON that begins with a line break for one, but not all of it. */
function inflateRaw(bytes: Buffer, options: ZlibOptions): Inflated {
  let bytesRead = 0
  const inflated = inflateWith(() => {
    const { buffer, engine } = inflateRawWithEngine(bytes, { ...options, info: true })
    bytesRead = engine.bytesWritten
    return buffer
  })
  return inflated.kind === 'bytes' && bytesRead < bytes.length ? { kind: 'broken' } : inflated
}

function inflateWith(inflate: () => Buffer): Inflated {
  try {
    return { kind: 'bytes', bytes: inflate() }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE') return { kind: 'too_large' }
    // zlib names its errors Z_…, brotli ERR_…, zstd ZSTD_error_…
    if (code !== undefined) return { kind: 'broken' }
    throw error
  }
}
