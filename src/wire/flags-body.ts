// From the bytes of an evaluation request to its JSON value: compression, base64 and form wrapping, in the exact order
// that clients since 2020 rely on. What the JSON means is `decide-request.ts`.
// Source: docs/wire/evaluation.md 1.3.

import { type JsonValue, parseJson } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import { decodeBase64 } from './base64.ts'
import { decideErrors, decompressedBytesMax, unsupportedContentType } from './decide-errors.ts'
import { formField } from './form-fields.ts'
import { gunzip, type Inflated, inflateEncoding } from './inflate.ts'
import { hasMoreValuesThan } from './json-value-count.ts'
import { parseTolerantJson } from './tolerant-json.ts'
import type { WireError } from './wire-error.ts'

export interface FlagsBody {
  readonly bytes: Buffer
  /** The headers as sent; undefined when absent. */
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  /** The query parameter `compression`, lower case, '' when absent. */
  readonly compression: string
}

/**
 * Decompresses LZString base64 text, never to more than `charsMax`; null for text that does not decompress.
 * Handed in, because not every build has it: without one lz64 is an unsupported compression.
 */
export type DecompressLz64 = (text: string, charsMax: number) => string | null

export function decodeFlagsBody(body: FlagsBody, decompressLz64?: DecompressLz64): Result<JsonValue, WireError> {
  const { contentType } = body
  // The usual request first: plain JSON.
  if (contentType === 'application/json' && body.contentEncoding === undefined && body.compression === '') {
    return decodePlain(body)
  }
  switch ((contentType ?? 'application/json').split(';', 1)[0]!.trim().toLowerCase()) {
    case 'application/json':
    case 'text/plain':
      return decodeCompressed(body, decompressLz64)
    case 'application/x-www-form-urlencoded':
      return decodeForm(body, decompressLz64)
    default:
      return err(unsupportedContentType(contentType ?? ''))
  }
}

function decodePlain(body: FlagsBody): Result<JsonValue, WireError> {
  return startsAsGzip(body.bytes)
    ? inflated(gunzip(body.bytes, decompressedBytesMax))
    : parseText(body.bytes.toString())
}

function decodeCompressed(body: FlagsBody, decompressLz64: DecompressLz64 | undefined): Result<JsonValue, WireError> {
  switch (body.compression) {
    case 'gzip':
    case 'gzip-js':
      return inflated(gunzip(body.bytes, decompressedBytesMax))
    case 'lz64':
    case 'lz-string': {
      if (decompressLz64 === undefined) return err(decideErrors.unsupportedCompression)
      const text = decompressLz64(body.bytes.toString('latin1'), decompressedBytesMax)
      return text === null ? err(decideErrors.invalidJson) : parseText(text)
    }
    case '':
    case 'base64':
      break
    default:
      return err(decideErrors.unsupportedCompression)
  }
  const encoding = body.contentEncoding?.toLowerCase() ?? ''
  if (encoding.includes('gzip')) return inflated(gunzip(body.bytes, decompressedBytesMax))
  if (encoding !== '') {
    const result = inflateEncoding(encoding, body.bytes, decompressedBytesMax)
    if (result.kind !== 'broken') return inflated(result)
  }
  return decodePlain(body)
}

function startsAsGzip(bytes: Buffer): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b
}

function inflated(result: Inflated): Result<JsonValue, WireError> {
  switch (result.kind) {
    case 'bytes':
      return parseText(result.bytes.toString())
    case 'too_large':
      return err(decideErrors.decompressedTooLarge)
    case 'broken':
      return err(decideErrors.invalidGzip)
    default:
      return result satisfies never
  }
}

/** JSON, tolerant JSON, then base64 of either. */
function parseText(text: string): Result<JsonValue, WireError> {
  const parsed = tryParse(text)
  if (parsed.ok || parsed.error !== decideErrors.invalidJson) return parsed
  const plain = percentDecoded(text)
  const decoded = plain === null ? null : decodeBase64(Buffer.from(paddedBase64(plain), 'latin1'))
  return decoded === null ? parsed : tryParse(decoded.toString())
}

/** Shorter texts cannot hold so many values that parsing them takes long. */
const alwaysQuickChars = 64 * 1024
/** No SDK comes near; parsing so many takes up to 20 ms. */
const valuesMax = 16 * 1024

function tryParse(text: string): Result<JsonValue, WireError> {
  const strict = parseStrict(text)
  if (strict.ok || strict.error !== decideErrors.invalidJsonStructure) return strict
  try {
    return text === '' ? err(decideErrors.invalidJson) : ok(parseTolerantJson(text))
  } catch (error) {
    if (error instanceof SyntaxError) return err(decideErrors.invalidJson)
    throw error
  }
}

function parseStrict(text: string): Result<JsonValue, WireError> {
  if (text.length > alwaysQuickChars && hasMoreValuesThan(text, valuesMax)) return err(decideErrors.tooManyValues)
  try {
    return ok(parseJson(text))
  } catch {
    // No JSON, or nested beyond the stack.
    return err(decideErrors.invalidJsonStructure)
  }
}

/** Base64 has few characters that anybody encodes; a text of nothing but sequences is not looked into. */
const percentSequencesMax = 128 * 1024

/** `%XX` sequences decoded, for text that is base64 below them; a `%` that starts none stays, and so does `+`. */
function percentDecoded(text: string): string | null {
  if (!text.includes('%')) return text
  if (text.split('%', percentSequencesMax + 2).length > percentSequencesMax + 1) return null
  return text.replace(/%([0-9a-fA-F]{2})/g, (_sequence, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

function paddedBase64(text: string): string {
  const bare = text.replaceAll(' ', '').trim()
  return bare + '='.repeat((4 - (bare.length % 4)) % 4)
}

function decodeForm(body: FlagsBody, decompressLz64: DecompressLz64 | undefined): Result<JsonValue, WireError> {
  const text = body.bytes.toString()
  const compression = body.compression === '' ? formCompression(text) : body.compression
  switch (compression) {
    case 'gzip':
    case 'gzip-js':
      return err(decideErrors.gzipInForm)
    case 'lz64':
    case 'lz-string': {
      if (decompressLz64 === undefined) return err(decideErrors.unsupportedCompression)
      const data = formField(text, 'data')?.replaceAll(' ', '+') ?? ''
      const inner = decompressLz64(data, decompressedBytesMax)
      return inner === null ? err(decideErrors.invalidJson) : parseStrict(inner)
    }
    case '':
    case 'base64':
      break
    default:
      return err(decideErrors.unsupportedCompression)
  }
  const decoded = percentDecoded(text)
  if (decoded === null) return err(decideErrors.invalidJsonStructure)
  // Between the first and the second `=`: padding is lost here and put back below.
  const data = percentDecoded(decoded.startsWith('data=') ? decoded.split('=', 2)[1]! : decoded)
  const bytes = data === null ? null : decodeBase64(Buffer.from(paddedBase64(data), 'latin1'))
  return bytes === null ? err(decideErrors.invalidJsonStructure) : parseStrict(bytes.toString())
}

/** Only lz64 may be announced by a field of the form itself. */
function formCompression(text: string): string {
  const field = /(?:^|&)compression=([^&]*)/.exec(text)?.[1]?.toLowerCase() ?? ''
  return field === 'lz64' || field === 'lz-string' ? field : ''
}
