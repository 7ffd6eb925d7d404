// The answers to OpenTelemetry requests: `partialSuccess`, and errors as `google.rpc.Status`, in JSON and in protobuf.
// Source: OTLP/HTTP; docs/wire/ingestion.md 12.

import { type WireError, wireError } from '../wire-error.ts'
import type { OtlpPath, OtlpSignal } from './otlp-paths.ts'
import type { OtlpForm } from './read-otlp.ts'

export const otlpErrors = {
  missingKey: wireError(401, 'missing_api_key', 'No project key: send it as a Bearer token or as ?token=.'),
  invalidKey: wireError(401, 'invalid_api_key', 'The project key is not valid.'),
  unreadable: wireError(400, 'invalid_body', 'The body is neither OTLP protobuf nor OTLP JSON.'),
  transient: wireError(503, 'transient_error', 'transient error, please retry'),
} as const

export function createOtlpTooLargeError(bytesMax: number): WireError {
  return wireError(413, 'payload_too_large', `The body exceeds ${bytesMax} bytes.`)
}

export const otlpContentTypes: Record<OtlpForm, string> = {
  json: 'application/json',
  protobuf: 'application/x-protobuf',
}

/** The form of a request, JSON or protobuf, by its content type, which may have parameters. */
export function otlpFormOfContentType(contentType: string | undefined): OtlpForm {
  const mediaType = (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
  return mediaType === otlpContentTypes.protobuf ? 'protobuf' : 'json'
}

const countNames: Record<OtlpSignal, string> = {
  logs: 'rejectedLogRecords',
  metrics: 'rejectedDataPoints',
  traces: 'rejectedSpans',
}

/** Says that none of the items was stored. */
export function encodePartialSuccess(form: OtlpForm, { signal, sentence }: OtlpPath, count: number): Buffer {
  if (count === 0) return Buffer.from(form === 'json' ? '{}' : '')
  if (form === 'protobuf') return encodeDelimited(1, encodeNumberAndText(1, count, sentence))
  // Protobuf's JSON writes integers of 64 bits as texts.
  const partialSuccess = { [countNames[signal]]: String(count), errorMessage: sentence }
  return Buffer.from(JSON.stringify({ partialSuccess }))
}

/** The codes of `google.rpc.Code` by HTTP status; 13 is `INTERNAL`. */
const statusCodes: Record<number, number> = { 400: 3, 401: 16, 408: 4, 413: 8, 503: 14 }
const internalCode = 13

export function encodeOtlpError(form: OtlpForm, { status, detail }: WireError): Buffer {
  const code = statusCodes[status] ?? internalCode
  if (form === 'protobuf') return encodeNumberAndText(1, code, detail)
  return Buffer.from(JSON.stringify({ code, message: detail }))
}

/** Encodes a message with a number in one field and a text in the next. */
function encodeNumberAndText(field: number, value: number, text: string): Buffer {
  return Buffer.concat([Buffer.from([field * 8]), encodeVarint(value), encodeDelimited(field + 1, Buffer.from(text))])
}

function encodeDelimited(field: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([field * 8 + 2]), encodeVarint(content.length), content])
}

/** @param value below 2^31. */
function encodeVarint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  return Buffer.from([...bytes, rest])
}
