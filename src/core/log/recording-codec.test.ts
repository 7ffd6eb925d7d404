import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { decodeRecords } from '../../../tests/support/decode-records.ts'
import { aCapturedEvent, aCapturedRecording } from '../../../tests/support/values.ts'
import type { CapturedRecording } from '../events/captured-event.ts'
import { assignProject, RecordEncoder, sealRecords } from './record-codec.ts'
import { encodeRecording } from './recording-codec.ts'

const uint32 = fc.integer({ min: 0, max: 0xffff_ffff })
const epochMs = fc.integer({ min: -2_208_988_800_000, max: 10_413_792_000_000 })
const text = fc.string({ unit: 'binary', maxLength: 60 })

const capturedRecording: fc.Arbitrary<CapturedRecording> = fc.record(
  {
    projectId: uint32,
    token: text,
    receivedAtMs: epochMs,
    capturedAtMs: epochMs,
    timestampMs: epochMs,
    uuid: fc.uuid(),
    sessionId: text,
    windowId: text,
    distinctId: text,
    snapshotSource: fc.constantFrom('web' as const, 'mobile' as const),
    lib: text,
    itemCount: uint32,
    itemsBytes: fc.integer({ min: 0, max: 2 ** 40 }),
    items: fc.uint8Array({ maxLength: 300 }),
  },
  { noNullPrototype: true },
)

describe('the record of a recording', () => {
  it('decodes to the encoded values, field by field, also between events', () => {
    fc.assert(
      fc.property(capturedRecording, expected => {
        const encoder = new RecordEncoder()
        encoder.addEvent(aCapturedEvent(1))
        const event = encoder.finish().bytes
        const recording = encodeRecording(expected)
        assert.equal(
          recording.bytes.length,
          recording.bytes.buffer.byteLength,
          'a separate buffer, ready to be transferred',
        )
        const run = new Uint8Array(Buffer.concat([event, recording.bytes, event]))
        sealRecords(run)
        const [before, record, after] = decodeRecords(run, 3)
        assert.ok(before?.kind === 'event' && after?.kind === 'event' && record?.kind === 'recording')
        assert.deepEqual(
          { ...record.recording, items: [...record.recording.items] },
          { ...expected, items: [...expected.items] },
        )
      }),
      { numRuns: 80 },
    )
  })

  it('is damaged if any of its bytes was changed', () => {
    const { bytes: sound } = encodeRecording(aCapturedRecording(1))
    sealRecords(sound)
    for (let at = 0; at < sound.length; at++) {
      const bytes = sound.slice()
      bytes[at]! ^= 0x5a
      assert.deepEqual(
        decodeRecords(bytes, 1).map(({ kind }) => kind),
        ['damaged'],
        `byte ${at}`,
      )
    }
  })

  it('can get its project after encoding', () => {
    const { bytes } = encodeRecording(aCapturedRecording(1, { projectId: 0 }))
    assignProject(bytes, 7)
    sealRecords(bytes)
    const [record] = decodeRecords(bytes)
    assert.equal(record?.kind === 'recording' && record.recording.projectId, 7)
  })

  it('refuses numbers that do not fit into 32 bits', () => {
    assert.throws(() => encodeRecording(aCapturedRecording(1, { projectId: -1 })), RangeError)
    assert.throws(() => encodeRecording(aCapturedRecording(1, { itemCount: 2 ** 32 })), RangeError)
  })
})
