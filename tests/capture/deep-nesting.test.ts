import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { decodeAndPrepareCapture } from '#wire/capture/decode-capture.ts'
import { prepareV1Capture, type V1CaptureInput } from '#wire/capture-v1/decode-batch.ts'
import type { DecideContext } from '#wire/flags/decide-request.ts'
import { decodeFlagsRequest } from '#wire/flags/decode-flags.ts'
import { decodeRecordingRequest } from '#wire/recordings/decode-recording.ts'

const depth = 200_000
const nested = '['.repeat(depth) + ']'.repeat(depth)
const event = `{"api_key":"phc_x","event":"e","distinct_id":"u","properties":{"a":${nested}}}`
const v1Event = `{"event":"e","uuid":"0195a000-0000-7000-8000-000000000000","distinct_id":"u","timestamp":"2025-07-01T11:00:00Z","properties":{"a":${nested}}}`
const received = { receivedAtMs: Date.parse('2025-07-01T11:00:00Z'), ip: '', random: () => 0 }
const plain = { data: '', compression: '', contentType: 'text/plain', contentEncoding: '', querySentAtMs: null }
const v1Headers = { token: 'phc_x', sentAtMs: 0, sdk: { name: 'web', version: '1' } }

/** Each body as it is, and in each encoding that its paths accept. */
function spellings(text: string) {
  return [
    { body: Buffer.from(text), contentEncoding: '' },
    { body: gzipSync(text), contentEncoding: 'gzip' },
    { body: brotliCompressSync(text), contentEncoding: 'br' },
    { body: zstdCompressSync(text), contentEncoding: 'zstd' },
  ]
}

function base64(text: string) {
  return {
    contentEncoding: '',
    body: Buffer.from(Buffer.from(text.padEnd(Math.ceil(text.length / 3) * 3)).toString('base64')),
  }
}

const decoders = {
  'v0 events': (text: string) =>
    [false, true].flatMap(verbose =>
      [...spellings(text), base64(text)].map(sent => {
        const input = { ...plain, engage: verbose, legacyPath: true, fallbackToken: null, ip: '', verbose, ...sent }
        const decoded = decodeAndPrepareCapture(input, received)
        return decoded.kind === 'refused' && decoded.error.code
      }),
    ),
  'a recording': (text: string) =>
    [...spellings(text), base64(text)].map(sent => {
      const decoded = decodeRecordingRequest({ ...plain, fallbackToken: null, ...sent }, { ...received, userAgent: '' })
      return decoded.kind === 'refused' && decoded.error.code
    }),
  'a v1 batch': (text: string) =>
    spellings(text).map(({ body, contentEncoding: encoding }) => {
      const input = { headers: { ...v1Headers, encoding } as unknown as V1CaptureInput['headers'], body, aiOnly: false }
      const decoded = prepareV1Capture(input, received)
      return decoded.kind === 'refused' && decoded.error.code
    }),
  'a flag request': (text: string) =>
    [...spellings(text), base64(text)].map(({ body: bytes, contentEncoding }) => {
      const body = { bytes, contentType: 'application/json', contentEncoding, compression: '' }
      const decoded = decodeFlagsRequest(body, { endpoint: 'flags' } as DecideContext)
      return !decoded.ok && decoded.error.code
    }),
}

/** Texts that are nested too deeply, among them some that only `JSON.parse` would read. */
const captureTexts = [
  event,
  `[${event}]`,
  `[0,${nested}]`,
  `["\\ud800",${nested}]`,
  `{"batch":5,"x":${nested}}`,
  nested,
]
const v1Texts = [v1Event, `"\\ud800",${v1Event}`, nested].map(
  items => `{"created_at":"2025-07-01T11:00:00Z","batch":[${items}]}`,
)
const flagTexts = [`{"token":"phc_x","distinct_id":"u","person_properties":{"a":${nested}}}`, nested]
const cases = [
  ['v0 events', captureTexts, 'invalid_json'],
  ['a recording', captureTexts, 'invalid_json'],
  ['a v1 batch', v1Texts, 'request_parsing_error'],
  ['a flag request', flagTexts, 'payload_too_large'],
] as const

describe('a body with hundreds of thousands of nested lists', () => {
  for (const [name, texts, code] of cases)
    it(`is refused unparsed as ${name}, in every encoding`, t => {
      const parses = t.mock.method(JSON, 'parse').mock
      assert.deepEqual([...new Set(texts.flatMap(decoders[name]))], [code])
      for (const call of parses.calls) assert.ok(!String(call.arguments[0]).includes('[[[['))
    })
})
