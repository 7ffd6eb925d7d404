import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { decompressItems } from '#core/capture/compressed-items.ts'
import { recordingBytesMax } from '#core/capture/prepare-recording.ts'
import { addRecordChecksums } from '#core/log/record-codec.ts'
import { decodeRecords } from '../../../tests/support/decode-records.ts'
import {
  decodeRecordingOnEventLoop,
  decodeRecordingRequest,
  type PreparedRecording,
  type RecordingInput,
} from './decode-recording.ts'

const receivedAtMs = Date.parse('2025-07-01T11:00:00Z')
const session = '0197c5a0-0000-7000-8000-00000000abcd'

function anElement(properties: object = {}, over: object = {}) {
  return {
    event: '$snapshot',
    distinct_id: 'ada',
    properties: { token: 'phc_a', $session_id: session, $snapshot_data: [], ...properties },
    ...over,
  }
}

function anInput(body: unknown, over: Partial<RecordingInput> = {}): RecordingInput {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const nothing = { data: '', compression: '', contentType: '', contentEncoding: '' }
  return { ...nothing, querySentAtMs: null, fallbackToken: null, body: bytes, ...over }
}

const received = (userAgent = 'Mozilla/5.0') => ({ receivedAtMs, userAgent, random: () => 7 })

/** The record that is kept of a request, with its items as text. */
async function kept(body: unknown, over: Partial<RecordingInput> = {}, userAgent?: string) {
  const prepared = decodeRecordingRequest(anInput(body, over), received(userAgent))
  assert.ok(prepared.kind === 'prepared', JSON.stringify(prepared))
  addRecordChecksums(prepared.record.bytes)
  const [record] = decodeRecords(prepared.record.bytes, 1)
  assert.ok(record?.kind === 'recording')
  const { recording } = record
  const json = (await decompressItems(recording.items, recording.itemsBytes)).toString()
  assert.equal(Buffer.byteLength(json), recording.itemsBytes)
  return { ...recording, json }
}

function refusalOf(prepared: PreparedRecording): string | undefined {
  return prepared.kind === 'refused' ? prepared.error.detail : prepared.kind === 'unfit' ? prepared.refusal : undefined
}

const refused = (body: unknown, over: Partial<RecordingInput> = {}) =>
  refusalOf(decodeRecordingRequest(anInput(body, over), received()))

describe('a recording request', () => {
  it('keeps items as they were written, with the items of lists joined and single objects added, in order', async () => {
    const head = `"event":"$snapshot","distinct_id":"ada"`
    const properties = `"token":"phc_a","$session_id":"s1"`
    const body = `[
      {${head},"properties":{${properties},"$snapshot_data":[ {"a":1.0, "b":"é"} , 12345678901234567890 ]}},
      {${head},"properties":{"\\u0024snapshot_data":{"c":[{}]}}},
      {${head},"properties":{"$snapshot_data":[ ]}},
      {${head},"properties":{"$snapshot_data":1,"$snapshot_data":[["d]"]]}}
    ]`
    const recording = await kept(body)
    assert.equal(recording.json, '[ {"a":1.0, "b":"é"} , 12345678901234567890 ,{"c":[{}]},["d]"]]')
    assert.equal(recording.itemCount, 4)
    assert.equal(recording.sessionId, 's1')
  })

  it('takes all values except the snapshots from the first element', async () => {
    const uuid = '0197c5a0-0000-7000-8000-000000000001'
    const first = anElement(
      { $window_id: 'w1', $snapshot_source: 'mobile', $lib: 'posthog-ios', $snapshot_data: { type: 4 } },
      { uuid, timestamp: '2025-07-01T10:00:05Z', sent_at: '2025-07-01T10:30:05Z' },
    )
    const second = anElement({ token: 'phc_b', $session_id: 'other', $window_id: 'w2' }, { distinct_id: 'bob' })
    const { json, items, ...recording } = await kept([first, second])
    assert.deepEqual(recording, {
      projectId: 0,
      token: 'phc_a',
      receivedAtMs,
      capturedAtMs: receivedAtMs,
      timestampMs: Date.parse('2025-07-01T10:30:00Z'),
      uuid,
      sessionId: session,
      windowId: 'w1',
      distinctId: 'ada',
      snapshotSource: 'mobile',
      lib: 'posthog-ios',
      itemCount: 1,
      itemsBytes: json.length,
    })
  })

  it('gets defaults for what the first element leaves out', async () => {
    const { timestampMs, uuid, windowId, snapshotSource, lib } = await kept(anElement({ $snapshot_source: 'tv' }))
    assert.deepEqual([timestampMs, windowId, snapshotSource, lib], [receivedAtMs, session, 'web', 'web'])
    assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
    assert.equal((await kept(anElement(), {}, 'posthog-android/3.1')).lib, 'posthog-android')
    assert.equal((await kept(anElement(), {}, 'curl/8 posthog')).lib, 'web')
    const late = await kept([anElement({}, { timestamp: '2025-07-01T10:00:00Z' })], {
      querySentAtMs: receivedAtMs - 60_000,
    })
    assert.equal(late.timestampMs, Date.parse('2025-07-01T10:01:00Z'))
  })

  it('may have its key and distinct id wherever an event may have them', async () => {
    const { token, ...properties } = anElement().properties
    for (const where of [{ token }, { $token: token }, { api_key: token }])
      assert.equal((await kept([{ event: '$snapshot', distinct_id: 1, properties, ...where }])).token, 'phc_a')
    assert.equal(
      (
        await kept(
          [anElement()].map(one => ({ ...one, properties })),
          { fallbackToken: ' phc_q ' },
        )
      ).token,
      'phc_q',
    )
    const inside = await kept([{ event: '$snapshot', properties: { token, ...properties, distinct_id: 23 } }])
    assert.equal(inside.distinctId, '23')
  })

  it('is refused for its session id first, then for its distinct id, then for its snapshots', () => {
    assert.equal(refused([anElement({ $session_id: undefined, $snapshot_data: 1 })]), 'missing_session_id')
    for (const $session_id of ['a_b', 'é', null, 5, ['a'], 'a'.repeat(71), 'a b', 'a\n'])
      assert.equal(refused([anElement({ $session_id, $snapshot_data: 1 })]), 'invalid_session_id', `${$session_id}`)
    assert.equal(refused([anElement({ $session_id: 'Z'.repeat(70) })]), undefined)
    assert.equal(refused([anElement({ $snapshot_data: 1 }, { distinct_id: ' ' })]), 'missing_distinct_id')
    for (const $snapshot_data of [undefined, null, 'text', 5, true])
      assert.equal(refused([anElement(), anElement({ $snapshot_data })]), 'missing_snapshot_data')
  })

  it('is refused before its key is looked up, like an event', () => {
    assert.equal(refused([]), 'request holds no event')
    assert.equal(
      refused({ api_key: 'phc_a', batch: [anElement()] }),
      'failed to hydrate events from request: non-engage request missing event name attribute',
    )
    const shapeless = 'failed to parse request: data did not match any variant of untagged enum RawRequest'
    for (const body of [5, [5], [{ ...anElement(), event: undefined }], [anElement(), anElement({}, { uuid: 'x' })]])
      assert.equal(refused(body), shapeless)
    assert.match(refused('[{') ?? '', /^failed to parse request: /)
    assert.match(refused('[{"event":"$snapshot","a":"\\ud800"}]') ?? '', /lone surrogate/)
    assert.equal(refused([anElement({ token: undefined })]), 'event submitted without an api_key')
    assert.equal(refused([anElement({ token: 'phx_1' })]), 'API key is not valid: personal_api_key')
    assert.equal(refused(''), 'request missing data payload')
  })

  it('is refused with its key, so that the reject belongs to the project', () => {
    const prepared = decodeRecordingRequest(anInput([anElement({ $session_id: 'a_b' })]), received())
    assert.ok(prepared.kind === 'unfit' && prepared.token === 'phc_a' && typeof prepared.body === 'object')
    assert.ok(prepared.body.text.includes('a_b'))
    assert.deepEqual([prepared.body.source.kind, prepared.body.source.isTruncated], [null, false])
    const long = decodeRecordingRequest(anInput([anElement({ $session_id: 'a_b', a: 'x'.repeat(70_000) })]), received())
    assert.ok(long.kind === 'unfit' && typeof long.body === 'object' && long.body.source.isTruncated)
    const misshapen = decodeRecordingRequest(anInput([anElement(), 5]), received())
    assert.ok(misshapen.kind === 'refused' && misshapen.token === 'phc_a')
  })

  it('is decoded in a thread if it is large, as sent or decompressed, or has a large id', () => {
    const large = [anElement({ $snapshot_data: [randomBytes(40_000).toString('hex')] })]
    const inline = (body: Buffer | unknown) => decodeRecordingOnEventLoop(anInput(body), received())
    assert.equal(inline(large), 'too_much_work')
    assert.equal(
      inline(gzipSync(JSON.stringify([anElement({ $snapshot_data: ['a'.repeat(70_000)] })]))),
      'too_much_work',
    )
    assert.notEqual(inline([anElement({ $snapshot_data: ['a'.repeat(60_000)] })]), 'too_much_work')
    const listed = [anElement({}, { distinct_id: Array(10_000).fill(0) })]
    assert.equal(inline(listed), 'too_much_work')
    assert.equal(decodeRecordingRequest(anInput(listed), received()).kind, 'prepared')
  })

  it('may decompress to the size that is allowed uncompressed, but not to ten times that size', () => {
    const ofBytes = (bytes: number) =>
      gzipSync(JSON.stringify([anElement({ $snapshot_data: ['a'.repeat(bytes - 4)] })]), { level: 1 })
    assert.equal(refused(ofBytes(recordingBytesMax)), undefined)
    assert.equal(refused(ofBytes(recordingBytesMax + 1)), 'replay_too_large')
    assert.match(
      refused(gzipSync(Buffer.alloc(126 * 1024 * 1024, 0x20), { level: 1 })) ?? '',
      /Decompressed body exceeds limit of 131072000/,
    )
  })
})
