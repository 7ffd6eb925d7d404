// Decompression with a bound on the output, so that a small body cannot become a huge one. The output never grows past the
// bound, even if the input claims a larger size.

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
 * How large a body may become: `freeBytes`, or `timesSent` times its compressed size if that is more. Every byte of
 * output costs work, so a sender must send bytes in proportion. The bound for lz64, which is the slowest form and sent
 * only by browsers without gzip, is enough for real batches, which shrink to a twentieth. The bound for the other forms
 * is the highest ratio that gzip can reach, so that 200 bytes of brotli do not keep a thread busy for a second.
 */
const expansion = {
  stream: { freeBytes: 25 * 1024 * 1024, timesSent: 1_032 },
  lz64: { freeBytes: 4 * 1024 * 1024, timesSent: 50 },
} as const

/** @param outputBytesMax the caller's bound, never exceeded. */
export function computeExpandedBytesMax(
  sentBytes: number,
  outputBytesMax: number,
  form: keyof typeof expansion,
): number {
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
 * Only the event loop sets a bound below this: it passes a body that exceeds its bound to a thread, which checks the body
 * again.
 */
const threadBytesMaxMin = 1024 * 1024

/**
 * Gunzips. The output buffer gets the size that the trailer names (of the last member, modulo 2^32), so that it is filled
 * in one go; a wrong size only costs further buffers. On the event loop, a size above the bound is enough for `too_large`,
 * even if the bytes are corrupt.
 */
export function gunzip(bytes: Buffer, outputBytesMax: number): Inflated {
  const claimed = bytes.length > gzipTrailerBytes ? bytes.readUInt32LE(bytes.length - gzipTrailerBytes) : 0
  // A body that claims too large a size is not unpacked: its output would live until the next full garbage collection, and
  // cause it.
  if (startsAsGzip(bytes) && claimed > outputBytesMax && outputBytesMax < threadBytesMaxMin)
    return { kind: 'too_large' }
  // One byte more than the output, because otherwise the engine needs another chunk to see the end.
  const chunkSize = Math.min(
    Math.max(claimed + 1, chunkBytesMin),
    outputBytesMax + 1,
    bytes.length * 64 + chunkBytesMin,
  )
  return inflateWith(() => {
    const { buffer, engine } = gunzipWithEngine(bytes, { maxOutputLength: outputBytesMax, chunkSize, info: true })
    // The engine's native half keeps the stream object, and with it the output, until the next full garbage collection,
    // which hundreds of large outputs would trigger. If Node renames the field, this does nothing.
    engine._outBuffer = null
    return buffer
  })
}

type WithEngine = (
  bytes: Buffer,
  options: ZlibOptions,
) => { buffer: Buffer; engine: { _outBuffer: unknown; readonly bytesWritten: number } }
/** The results that the option `info` adds; Node's types leave them out. */
const gunzipWithEngine = gunzipSync as unknown as WithEngine
const inflateRawWithEngine = inflateRawSync as unknown as WithEngine

/**
 * Decodes a `Content-Encoding` other than gzip; an unknown encoding gives `broken` too. Brotli is always `too_large` for
 * the event loop: its decoder fills a window of up to 16 MiB, which the sender chooses, before it hands over the first
 * byte, so that 53 bytes keep it busy for 35 ms, even with a low bound.
 */
export function inflateEncoding(encoding: string, bytes: Buffer, outputBytesMax: number): Inflated {
  const options = { maxOutputLength: outputBytesMax }
  switch (encoding) {
    case 'br':
      if (outputBytesMax < threadBytesMaxMin) return { kind: 'too_large' }
      return inflateWith(() => brotliDecompressSync(bytes, options))
    case 'zstd':
      return inflateWith(() => zstdDecompressSync(bytes, options))
    case 'deflate':
      return bytes[0] === 0x78 ? inflateWith(() => inflateSync(bytes, options)) : inflateRaw(bytes, options)
    default:
      return { kind: 'broken' }
  }
}

/**
 * Raw deflate has no checksum, so the beginning of any body may decode, even JSON after a line break. Such a body is
 * `broken`.
 */
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
