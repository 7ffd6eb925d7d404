// Unwraps the bytes of a v0 capture or recording request into its JSON text: finds the payload and undoes its
// encodings, in the exact order that every SDK since 2020 relies on. `capture-request.ts` reads the JSON of events.

import { isAscii, isUtf8 } from 'node:buffer'
import { ascii } from '#core/ascii.ts'
import { err, ok, type Result } from '#core/result.ts'
import { decodeBase64, looksLikeBase64 } from '../bytes/base64.ts'
import { isRepeatedField, readFormField, replaceBytes } from '../bytes/form-fields.ts'
import {
  computeExpandedBytesMax,
  gunzip,
  type Inflated,
  inflateEncoding,
  isGzip,
  startsAsGzip,
} from '../bytes/inflate.ts'
import { decompressLz64 } from '../bytes/lz64.ts'
import type { WireError } from '../wire-error.ts'
import { captureErrors } from './capture-errors.ts'

const { blank, plus, openBracket, openBrace } = ascii

export interface CaptureBody {
  readonly body: Buffer
  /** The query parameter `data`; replaces the body unless empty. */
  readonly data: string
  /** The query parameter `compression`, as sent. */
  readonly compression: string
  readonly contentType: string
  readonly contentEncoding: string
  /** True for `/e`, `/capture`, `/track` and `/engage`, which accept base64 that is not announced. */
  readonly legacyPath: boolean
}

export interface CapturePayload {
  /** JSON text in UTF-8, not parsed yet. */
  readonly bytes: Buffer
  readonly text: string
  /** Whether the text is ASCII, so that byte offsets are text offsets. */
  readonly ascii: boolean
  /** `token` or `api_key` next to `data` in a form. */
  readonly formToken: string | null
}

/** `inflated_too_large`: the output exceeds `outputBytesMax`; the caller may retry elsewhere with a higher bound. */
export type CaptureBodyFault = WireError | 'inflated_too_large'

type Compression = 'gzip' | 'lz64' | 'base64'

const formContentType = 'application/x-www-form-urlencoded'

/**
 * @param outputBytesMax bound on the output of any decompression; no more is ever allocated.
 * Source: docs/wire/ingestion.md 1.4, step by step; docs/wire/clients.md 4.
 */
export function readCaptureBody(input: CaptureBody, outputBytesMax: number): Result<CapturePayload, CaptureBodyFault> {
  // 1. Take the payload: `data` of the query, else the body.
  const inQuery = input.data !== ''
  let payload = inQuery ? decodeQueryData(input.data) : input.body
  if (payload.length === 0) return err(captureErrors.missingPayload)

  // 2. Undo base64 around everything, unless lz64 is announced, whose text is base64 too.
  const headerCompression = input.contentEncoding === '' ? null : parseCompression(input.contentEncoding, 'exact')
  let compression = parseCompression(input.compression)
  if ((compression ?? headerCompression) !== 'lz64' && !looksLikeForm(payload) && looksLikeBase64(payload)) {
    payload = decodeBase64(payload) ?? payload
  }

  // 3. If the payload is a form, take its `data` field.
  let formToken: string | null = null
  let inForm = false
  if (input.contentType === formContentType && !looksLikeForm(payload)) return err(captureErrors.formExpected)
  if (looksLikeForm(payload) && (input.contentType.startsWith(formContentType) || startsWithData(payload))) {
    const form = readForm(payload)
    if (!form.ok) return form
    if (form.value.data !== null) {
      payload = form.value.data
      inForm = true
    }
    compression ??= parseCompression(form.value.compression)
    formToken = form.value.token
  }

  // 4. Find the compression: the query names it, else the form, else the header.
  compression ??= headerCompression
  if (inForm && compression === 'gzip' && looksLikeBase64(payload)) {
    const decoded = decodeBase64(payload)
    // If not gzip, the announcement is ignored: posthog-js 1.78 announces gzip but sends base64 of plain JSON.
    if (decoded !== null && startsAsGzip(decoded)) payload = decoded
    else if (decoded !== null) compression = null
  }

  // 5. Decompress; the result has to be UTF-8.
  const inflatedBytesMax = computeExpandedBytesMax(payload.length, outputBytesMax, 'stream')
  if (compression === null && !inForm && !inQuery && input.contentEncoding !== '' && !isGzip(payload)) {
    const inflated = inflateEncoding(input.contentEncoding, payload, inflatedBytesMax)
    if (inflated.kind === 'too_large') return err('inflated_too_large')
    if (inflated.kind === 'bytes') payload = inflated.bytes
  }
  let zipped = false
  if (compression === 'gzip' || isGzip(payload)) {
    const inflated: Inflated = gunzip(payload, inflatedBytesMax)
    if (inflated.kind === 'too_large') return err('inflated_too_large')
    if (inflated.kind === 'broken') return err(captureErrors.invalidGzip)
    payload = inflated.bytes
    zipped = true
  } else if (compression === 'lz64') {
    const decompressed = readLz64(payload, outputBytesMax)
    if (!decompressed.ok) return decompressed
    payload = decompressed.value
  }
  if (!isUtf8(payload)) return err(zipped ? captureErrors.invalidGzipText : captureErrors.invalidUtf8)

  // 6. Undo base64 of the text, on paths where old libraries send it.
  if ((input.legacyPath || inForm) && looksLikeBase64(payload)) {
    const decoded = decodeBase64(payload)
    if (decoded !== null && isUtf8(decoded)) payload = decoded
  }
  const ascii = isAscii(payload)
  return ok({ bytes: payload, text: payload.toString(ascii ? 'latin1' : 'utf8'), ascii, formToken })
}

function readLz64(payload: Buffer, outputBytesMax: number): Result<Buffer, CaptureBodyFault> {
  const decompressed = decompressLz64(payload, computeExpandedBytesMax(payload.length, outputBytesMax, 'lz64'))
  if (decompressed.kind === 'too_large') return err('inflated_too_large')
  if (decompressed.kind === 'broken') return err(captureErrors.invalidLz64)
  const { text } = decompressed
  return text.isWellFormed() ? ok(Buffer.from(text)) : err(captureErrors.invalidLz64Text)
}

/** The compression of a known name, such as `gzip-js`; null for unknown names, which are ignored. */
function parseCompression(name: string, spelling: 'any case' | 'exact' = 'any case'): Compression | null {
  switch (spelling === 'exact' ? name : name.toLowerCase()) {
    case 'gzip':
    case 'gzip-js':
      return 'gzip'
    case 'lz64':
    case 'lz-string':
      return 'lz64'
    case 'base64':
    case 'b64':
      return 'base64'
    default:
      return null
  }
}

function decodeQueryData(data: string): Buffer {
  const bytes = Buffer.from(data, 'utf8')
  return looksLikeBase64(bytes, 'blanks allowed') ? replaceBytes(Buffer.from(data, 'latin1'), blank, plus) : bytes
}

const formFields = ['data=', '_=', 'ip=', 'compression=']
const formLookedAtBytes = 128

/** Whether a known field is at the start, or after an `&` within the first 128 bytes. */
function looksLikeForm(payload: Buffer): boolean {
  const first = payload[0]
  // Most bodies are JSON: its first byte and the absence of an `&` are enough to exclude a form.
  const start = payload.toString('latin1', 0, formLookedAtBytes)
  if ((first === openBrace || first === openBracket) && !start.includes('&')) return false
  return formFields.some(field => start.startsWith(field) || start.includes(`&${field}`))
}

function startsWithData(payload: Buffer): boolean {
  return payload.length > 5 && payload.toString('latin1', 0, 5) === 'data='
}

interface CaptureForm {
  readonly data: Buffer | null
  readonly compression: string
  readonly token: string | null
}

function readForm(payload: Buffer): Result<CaptureForm, WireError> {
  if (!isUtf8(payload)) return err(captureErrors.invalidForm)
  const form = payload.toString('utf8')
  if (isRepeatedField(form, 'data')) return err(captureErrors.invalidForm)
  const data = readFormField(form, 'data')
  return ok({
    data: data === null ? null : decodeQueryData(data),
    compression: readFormField(form, 'compression') ?? '',
    token: readFormField(form, 'token') ?? readFormField(form, 'api_key'),
  })
}
