// Turns the bytes of an evaluation request into its JSON value: undoes compression, base64 and forms, in the exact
// order that clients since 2020 rely on. `decide-request.ts` reads the JSON.
// Source: docs/wire/evaluation.md 1.3.

import { ascii } from '#core/ascii.ts'
import { type JsonValue, parseJson } from '#core/json.ts'
import { hasMoreSeparatorsThan } from '#core/json-text.ts'
import { err, ok, type Result } from '#core/result.ts'
import { decodeBase64 } from '../bytes/base64.ts'
import { readFormField } from '../bytes/form-fields.ts'
import { gunzip, type Inflated, inflateEncoding, startsAsGzip } from '../bytes/inflate.ts'
import { decompressLz64 } from '../bytes/lz64.ts'
import { parseTolerantJson } from '../bytes/tolerant-json.ts'
import type { WireError } from '../wire-error.ts'
import { createFlagsContentTypeError, decideErrors } from './decide-errors.ts'

const { blank, percent, comma, zero, nine, lowerA, lowerF, caseBit } = ascii

export interface FlagsBody {
  readonly bytes: Buffer
  /** The headers as sent; undefined when absent. */
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  /** The query parameter `compression` in lower case; '' when absent. */
  readonly compression: string
}

/** Limits of decoding a body; the event loop has smaller ones than a decode thread. */
export interface FlagsBodyLimits {
  /**
   * A body that decompresses to more is `decompressed_too_large`: decompression stops, and the caller refuses the body
   * or decodes it elsewhere.
   */
  readonly decompressedBytesMax: number
  /** A text with more values is `too_much_to_parse`; when absent, only the limits of every request apply. */
  readonly valuesMax?: number
}

type TextRefusal = WireError | 'too_much_to_parse'
type DecodedBody = Result<JsonValue, TextRefusal | 'decompressed_too_large'>

export function decodeFlagsBody(body: FlagsBody, limits: FlagsBodyLimits): DecodedBody {
  const { contentType } = body
  // Plain JSON, the usual request, comes first.
  if (contentType === 'application/json' && body.contentEncoding === undefined && body.compression === '') {
    return decodePlain(body, limits)
  }
  switch ((contentType ?? 'application/json').split(';', 1)[0]!.trim().toLowerCase()) {
    case 'application/json':
    case 'text/plain':
      return decodeCompressed(body, limits)
    case 'application/x-www-form-urlencoded':
      return decodeForm(body, limits)
    default:
      return err(createFlagsContentTypeError(contentType ?? ''))
  }
}

function decodePlain(body: FlagsBody, limits: FlagsBodyLimits): DecodedBody {
  return startsAsGzip(body.bytes)
    ? toDecodedBody(gunzip(body.bytes, limits.decompressedBytesMax), limits)
    : parseText(body.bytes.toString(), limits)
}

function decodeCompressed(body: FlagsBody, limits: FlagsBodyLimits): DecodedBody {
  switch (body.compression) {
    case 'gzip':
    case 'gzip-js':
      return toDecodedBody(gunzip(body.bytes, limits.decompressedBytesMax), limits)
    case 'lz64':
    case 'lz-string':
      return decodeLz64(body.bytes, limits, parseText)
    case '':
    case 'base64':
      break
    default:
      return err(decideErrors.unsupportedCompression)
  }
  const encoding = body.contentEncoding?.toLowerCase() ?? ''
  if (encoding.includes('gzip')) return toDecodedBody(gunzip(body.bytes, limits.decompressedBytesMax), limits)
  if (encoding !== '') {
    const result = inflateEncoding(encoding, body.bytes, limits.decompressedBytesMax)
    if (result.kind !== 'broken') return toDecodedBody(result, limits)
  }
  return decodePlain(body, limits)
}

function decodeLz64(
  base64: Buffer,
  limits: FlagsBodyLimits,
  parse: (text: string, limits: FlagsBodyLimits) => Result<JsonValue, TextRefusal>,
): DecodedBody {
  const decompressed = decompressLz64(base64, limits.decompressedBytesMax)
  if (decompressed.kind === 'too_large') return err('decompressed_too_large')
  // Invalid characters are replaced, as in every body that is not valid Unicode.
  return decompressed.kind === 'broken'
    ? err(decideErrors.invalidJson)
    : parse(decompressed.text.toWellFormed(), limits)
}

function toDecodedBody(result: Inflated, limits: FlagsBodyLimits): DecodedBody {
  switch (result.kind) {
    case 'bytes':
      return parseText(result.bytes.toString(), limits)
    case 'too_large':
      return err('decompressed_too_large')
    case 'broken':
      return err(decideErrors.invalidGzip)
    default:
      return result satisfies never
  }
}

/** Tries JSON, then tolerant JSON, then base64 of either. */
function parseText(text: string, limits: FlagsBodyLimits): Result<JsonValue, TextRefusal> {
  const parsed = tryParse(text, limits)
  if (parsed.ok || parsed.error !== decideErrors.invalidJson) return parsed
  const decoded = decodeBareBase64(percentDecode(Buffer.from(text)))
  return decoded === null ? parsed : tryParse(decoded.toString(), limits)
}

/** A text with more values than this is refused unparsed: SDKs send far fewer. */
const readValuesMax = 16 * 1024
/** Shorter texts are parsed, however many values they have. */
const alwaysReadChars = 64 * 1024

/** A short text cannot have too many values, since each takes a character and a separator, so it is not searched. */
function hasTooManyValues(text: string, { valuesMax }: FlagsBodyLimits): boolean {
  return valuesMax !== undefined && text.length > valuesMax && hasMoreSeparatorsThan(text, valuesMax, comma)
}

function tryParse(text: string, limits: FlagsBodyLimits): Result<JsonValue, TextRefusal> {
  const strict = parseStrict(text, limits)
  if (strict.ok || strict.error !== decideErrors.invalidJsonStructure) return strict
  try {
    return text === '' ? err(decideErrors.invalidJson) : ok(parseTolerantJson(text))
  } catch (error) {
    if (error instanceof SyntaxError) return err(decideErrors.invalidJson)
    throw error
  }
}

function parseStrict(text: string, limits: FlagsBodyLimits): Result<JsonValue, TextRefusal> {
  if (hasTooManyValues(text, limits)) return err('too_much_to_parse')
  if (text.length > alwaysReadChars && hasMoreSeparatorsThan(text, readValuesMax, comma))
    return err(decideErrors.tooManyValues)
  try {
    return ok(parseJson(text))
  } catch {
    // The caller needs to know only that the text is not JSON.
    return err(decideErrors.invalidJsonStructure)
  }
}

/** Decodes the `%XX` sequences of a text in one pass; any other `%`, and `+`, stay. */
function percentDecode(text: Buffer): Buffer {
  const first = text.indexOf(percent)
  if (first === -1) return text
  const decoded = Buffer.from(text)
  let length = first
  for (let at = first; at < text.length; at++) {
    const byte = text[at] === percent ? parseHexByte(text, at + 1) : -1
    decoded[length++] = byte === -1 ? text[at]! : byte
    if (byte !== -1) at += 2
  }
  return decoded.subarray(0, length)
}

/** The byte of two hexadecimal digits; -1 for other characters. */
function parseHexByte(text: Buffer, at: number): number {
  const high = parseHexDigit(text[at])
  const low = parseHexDigit(text[at + 1])
  return high === -1 || low === -1 ? -1 : high * 16 + low
}

function parseHexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1
  if (byte >= zero && byte <= nine) return byte - zero
  const lower = byte | caseBit
  return lower >= lowerA && lower <= lowerF ? lower - lowerA + 10 : -1
}

/** Decodes base64 that may have blanks anywhere and lack its padding; null when it is not base64. */
function decodeBareBase64(text: Buffer): Buffer | null {
  const bare = removeBlanks(text).toString('latin1').trim()
  return decodeBase64(Buffer.from(bare + '='.repeat((4 - (bare.length % 4)) % 4), 'latin1'))
}

/** A loop, because the engine's own replace takes many times as long for text that consists of blanks. */
function removeBlanks(text: Buffer): Buffer {
  const first = text.indexOf(blank)
  if (first === -1) return text
  const bare = Buffer.from(text)
  let length = first
  for (let at = first; at < text.length; at++) if (text[at] !== blank) bare[length++] = text[at]!
  return bare.subarray(0, length)
}

function decodeForm(body: FlagsBody, limits: FlagsBodyLimits): DecodedBody {
  const text = body.bytes.toString()
  const compression = body.compression === '' ? readFormCompression(text) : body.compression
  switch (compression) {
    case 'gzip':
    case 'gzip-js':
      return err(decideErrors.gzipInForm)
    case 'lz64':
    case 'lz-string':
      return decodeLz64(Buffer.from(readFormField(text, 'data') ?? ''), limits, parseStrict)
    case '':
    case 'base64':
      break
    default:
      return err(decideErrors.unsupportedCompression)
  }
  const decoded = percentDecode(body.bytes).toString('latin1')
  // Take the text between the first and the second `=`: padding is lost here and restored below.
  const data = decoded.startsWith('data=') ? decoded.split('=', 2)[1]! : decoded
  const bytes = decodeBareBase64(percentDecode(Buffer.from(data, 'latin1')))
  return bytes === null ? err(decideErrors.invalidJsonStructure) : parseStrict(bytes.toString(), limits)
}

/** The compression that a form's own field announces, which may only be lz64. */
function readFormCompression(text: string): string {
  const field = /(?:^|&)compression=([^&]*)/.exec(text)?.[1]?.toLowerCase() ?? ''
  return field === 'lz64' || field === 'lz-string' ? field : ''
}
