// Reads the body of an OpenTelemetry request: decompresses it, finds out its form and counts its items. Pure, so that it
// can run on the event loop for small bodies, and in a decode thread for the rest. Source: docs/wire/ingestion.md 12.

import { gunzip, startsAsGzip } from '../bytes/inflate.ts'
import { countOtlpJson } from './count-json.ts'
import { countOtlpProtobuf } from './count-protobuf.ts'
import type { OtlpCount } from './item-tally.ts'
import type { OtlpPath } from './otlp-paths.ts'

export type OtlpForm = 'json' | 'protobuf'

export interface OtlpInput extends Pick<OtlpPath, 'signal' | 'bytesMax'> {
  readonly body: Buffer
  /** Which form the content type announces. */
  readonly announced: OtlpForm
  readonly contentEncoding: string
  /** The query parameter `compression`. */
  readonly compression: string
}

export type OtlpReadResult =
  /** `form` is the form in which the body was read. */
  | ({ readonly kind: 'read'; readonly form: OtlpForm } & OtlpCount)
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'too_large' }

/** The most bytes that the event loop reads, as sent and decompressed; a decode thread reads larger bodies. */
const inlineBytesMax = 64 * 1024

/** For the event loop: `too_much_work` for a body that a decode thread has to take. */
export function readOtlpOnEventLoop(input: OtlpInput): OtlpReadResult | 'too_much_work' {
  if (input.body.length > inlineBytesMax) return 'too_much_work'
  const read = readOtlp({ ...input, bytesMax: inlineBytesMax })
  return read.kind === 'too_large' ? 'too_much_work' : read
}

export function readOtlp(input: OtlpInput): OtlpReadResult {
  const { body, announced, signal, bytesMax } = input
  const unpacked = body.length === 0 ? ({ kind: 'bytes', bytes: body } as const) : unpackBody(input)
  if (unpacked.kind === 'too_large') return unpacked
  if (unpacked.kind === 'broken') return { kind: 'unreadable' }
  const { bytes } = unpacked
  if (bytes.length > bytesMax) return { kind: 'too_large' }
  if (bytes.length === 0) return { kind: 'read', form: announced, count: 0, service: null }
  for (const form of announced === 'json' ? (['json', 'protobuf'] as const) : (['protobuf', 'json'] as const)) {
    const counted = form === 'json' ? countOtlpJson(bytes, signal) : countOtlpProtobuf(bytes, signal)
    if (counted !== null) return { kind: 'read', form, count: counted.count, service: counted.service }
  }
  return { kind: 'unreadable' }
}

function unpackBody({ body, contentEncoding, compression, bytesMax }: OtlpInput): ReturnType<typeof gunzip> {
  const encoding = contentEncoding.trim().toLowerCase()
  if (encoding !== '' && encoding !== 'identity' && encoding !== 'gzip') return { kind: 'broken' }
  const isZipped = encoding === 'gzip' || /^gzip(?:-js)?$/i.test(compression) || startsAsGzip(body)
  return isZipped ? gunzip(body, bytesMax) : { kind: 'bytes', bytes: body }
}
