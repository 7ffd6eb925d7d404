import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { CapturedRecording } from '#core/events/captured-event.ts'
import { RecordEncoder } from '#core/log/record-codec.ts'
import { encodeRecording } from '#core/log/recording-codec.ts'
import { aCapturedEvent, aCapturedReject } from '../values.ts'
import { recordKeys } from './record-keys.ts'

/** Texts whose byte count differs from their count of UTF-16 units. */
const odd = { name: 'kjøp 🛒', distinctId: 'Ægir 🦑 \u{10ffff}', ip: 'ß' }

function keysOf(bytes: Uint8Array) {
  return Array.from(recordKeys(bytes), ({ start, end, projectId, keyStart, keyEnd }) => ({
    ...{ start, end, projectId },
    distinctId: Buffer.from(bytes.subarray(keyStart, keyEnd)).toString(),
  }))
}

it('each event and reject in encoded records is found with its key, whatever characters it contains', () => {
  const encoder = new RecordEncoder()
  const places = [0]
  const note = () => void places.push(encoder.bytes)
  encoder.addEvent(aCapturedEvent(1))
  note()
  encoder.addEvent(aCapturedEvent(2, { ...odd, projectId: 4_000_000_000, setJson: '{"a":1}', setOnceJson: '{}' }))
  note()
  encoder.addReject(aCapturedReject({ ...odd, reason: 'é', field: '🛒', projectId: 7 }))
  note()
  encoder.addReject(aCapturedReject({ distinctId: '' }))
  note()
  assert.deepEqual(keysOf(encoder.finish().bytes), [
    { start: 0, end: places[1], projectId: 1, distinctId: 'person-1' },
    { start: places[1], end: places[2], projectId: 4_000_000_000, distinctId: odd.distinctId },
    { start: places[2], end: places[3], projectId: 7, distinctId: odd.distinctId },
    { start: places[3], end: places[4], projectId: 1, distinctId: '' },
  ])
})

it('the key of a recording is found', () => {
  const recording: CapturedRecording = {
    ...{ projectId: 3, token: 'phc_test_token', receivedAtMs: 1, capturedAtMs: 2, timestampMs: 3 },
    ...{ uuid: aCapturedEvent(1).uuid, sessionId: 'økt 🎬', windowId: 'w', distinctId: odd.distinctId },
    ...{ snapshotSource: 'web', lib: 'web', itemCount: 1, itemsBytes: 2, items: Buffer.from('[]') },
  }
  const { bytes } = encodeRecording(recording)
  assert.deepEqual(keysOf(bytes), [{ start: 0, end: bytes.length, projectId: 3, distinctId: odd.distinctId }])
})

it('bytes that are not encoded records are refused', () => {
  const { bytes } = (() => {
    const encoder = new RecordEncoder()
    encoder.addEvent(aCapturedEvent(1))
    return encoder.finish()
  })()
  assert.throws(() => [...recordKeys(bytes.subarray(0, bytes.length - 1))], RangeError)
})
