import assert from 'node:assert/strict'
import { it } from 'node:test'
import { outcomeCodeAt, rowCountOf } from '#core/capture/outcome-table.ts'
import { pickProperties } from '#core/pick-properties.ts'
import { parseJsonLine } from '#importer/read/parse-record.ts'
import { decodeAndPrepareCapture } from '#wire/capture/decode-capture.ts'
import { prepareV1Capture } from '#wire/capture-v1/decode-batch.ts'
import { parseDecideQuery } from '#wire/flags/decide-query.ts'
import { decodeFlagsRequest } from '#wire/flags/decode-flags.ts'
import { decodeRecordingRequest } from '#wire/recordings/decode-recording.ts'
import { misreadFromNowOn } from '../support/spelled-json.ts'

const received = { receivedAtMs: Date.parse('2025-07-01T11:00:00Z'), ip: '', userAgent: '', random: () => 7 }
const asJson = { data: '', compression: '', contentType: 'application/json', contentEncoding: '' }
const sender = { querySentAtMs: null, fallbackToken: null }

function v0(text: string, over = {}): unknown {
  const input = {
    ...asJson,
    ...sender,
    body: Buffer.from(text),
    legacyPath: false,
    engage: false,
    verbose: false,
    ip: '',
  }
  const prepared = decodeAndPrepareCapture({ ...input, ...over }, received)
  assert.ok(prepared.kind === 'prepared')
  return codesOf(prepared.table)
}

function v1(text: string): unknown {
  const headers = { token: 'phc_a', encoding: '', sentAtMs: received.receivedAtMs, sdk: null } as const
  const prepared = prepareV1Capture({ headers, body: Buffer.from(text), aiOnly: false }, received)
  assert.ok(prepared.kind === 'prepared')
  return codesOf(prepared.table)
}

function codesOf(table: Parameters<typeof outcomeCodeAt>[0]): number[] {
  return Array.from({ length: rowCountOf(table) }, (_, row) => outcomeCodeAt(table, row))
}

function recording(text: string): unknown {
  const prepared = decodeRecordingRequest({ ...asJson, ...sender, body: Buffer.from(text) }, received)
  assert.ok(prepared.kind === 'prepared')
  return prepared.record.bytes.length
}

function flags(text: string): unknown {
  const query = parseDecideQuery({}, 'flags')
  assert.ok(query.ok)
  const context = {
    endpoint: 'flags',
    query: query.value,
    userAgent: '',
    hasBrowserHeader: false,
    address: '',
  } as const
  const decoded = decodeFlagsRequest({ ...asJson, contentEncoding: undefined, bytes: Buffer.from(text) }, context)
  assert.ok(decoded.ok)
  return decoded.value
}

const id = '0197c5a0-0000-7000-8000-000000000001'
const entries: [name: string, text: string, key: string, read: (text: string) => unknown][] = [
  ['an event', '{"first v0":1,"api_key":"k","\\u0065vent":"e","distinct_id":"u"}', '\\u0065vent', v0],
  [
    'an event of a batch that is judged one by one',
    '{"api_key":"k","batch":[{"event":"$identify","distinct_id":"u","properties":{"first verbose":1,"$anon_distinct_id":"a","\\u0024process_person_profile":false}}]}',
    '\\u0024process_person_profile',
    text => v0(text, { verbose: true }),
  ],
  [
    'a profile',
    '{"first engage":1,"$token":"k","\\u0024distinct_id":"u","$set":{"a":1}}',
    '\\u0024distinct_id',
    text => v0(text, { engage: true }),
  ],
  [
    'a batch of protocol v1',
    `{"first v1":1,"created_at":"2025-07-01T11:00:00Z","\\u0062atch":[{"event":"e","distinct_id":"u","uuid":"${id}","timestamp":"2025-07-01T10:59:58Z","properties":{}}]}`,
    '\\u0062atch',
    v1,
  ],
  [
    'a recording',
    `{"event":"$snapshot","distinct_id":"u","uuid":"${id}","properties":{"first recording":1,"token":"k","$session_id":"${id}","\\u0024snapshot_data":[{}]}}`,
    '\\u0024snapshot_data',
    recording,
  ],
  [
    'a request for flags',
    '{"token":"k","distinct_id":"u","person_properties":{"first flags":1,"pr\\u00e9nom":"Ada"}}',
    'pr\\u00e9nom',
    flags,
  ],
  [
    'a long property that is stored',
    `{"p":{"first stored":"${'x'.repeat(70_000)}","pr\\u00e9nom":"Ada"}}`,
    'pr\\u00e9nom',
    text => pickProperties(text, new Set(['p'])),
  ],
  [
    'a record of an import',
    '{"first record":1,"pr\\u00e9nom":"Ada"}',
    'pr\\u00e9nom',
    text => parseJsonLine(Buffer.from(text)),
  ],
]

for (const [name, text, key, read] of entries)
  it(`${name} means the same with a JSON-escaped key, whatever requests came before`, () => {
    const expected = read(text.replace(`"${key}"`, `"${JSON.parse(`"${key}"`)}"`))
    const other = misreadFromNowOn(text, key)
    assert.deepEqual(read(text), expected)
    assert.ok(other)
  })
