import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { decodeRecords } from '../../../tests/support/decode-records.ts'
import { runs } from '../../../tests/support/nightly.ts'
import { aCapturedEvent, aCapturedRecording, aCapturedReject, encodedEvents } from '../../../tests/support/values.ts'
import {
  type CapturedEvent,
  type CapturedRecording,
  type CapturedReject,
  type CookielessVisitor,
  lanes,
  type RejectSource,
} from '../events/captured-event.ts'
import { encodeVisitor } from '../events/visitor-text.ts'
import { addRecordChecksums, createSettledVisitor, RecordEncoder, writeProjectIdIntoRecords } from './record-codec.ts'
import { RecordCursor } from './record-decoder.ts'
import { kindEvent } from './record-layout.ts'
import { encodeRecording } from './recording-codec.ts'

const uint32 = fc.integer({ min: 0, max: 0xffff_ffff })
const epochMs = fc.integer({ min: -2_208_988_800_000, max: 10_413_792_000_000 })
const text = fc.string({ unit: 'binary', maxLength: 60 })
const jsonText = fc.oneof(text, fc.string({ unit: 'binary', minLength: 4000, maxLength: 9000 }))

const visitor: fc.Arbitrary<CookielessVisitor> = fc.record(
  {
    stateful: fc.option(fc.record({ hash: text, day: text, isSentinel: fc.boolean() }, { noNullPrototype: true })),
    location: fc.option(
      fc.record(
        { city_name: text, latitude: fc.integer(), further: fc.constant({ subdivision_3_code: 'x' }) },
        { noNullPrototype: true, requiredKeys: [] },
      ),
    ),
  },
  { noNullPrototype: true },
)

const capturedEvent: fc.Arbitrary<CapturedEvent> = fc.record(
  {
    projectId: uint32,
    token: text,
    lane: fc.constantFrom(...lanes),
    historicalMigration: fc.boolean(),
    importJobId: uint32,
    protocol: fc.constantFrom('v0' as const, 'v1' as const),
    personProcessingForcedOff: fc.boolean(),
    notes: uint32,
    receivedAtMs: epochMs,
    capturedAtMs: epochMs,
    timestampMs: epochMs,
    sentAtMs: fc.option(epochMs),
    uuid: fc.uuid(),
    name: text,
    distinctId: text,
    ip: fc.constantFrom('', '203.0.113.7', '2001:db8::1'),
    visitor: fc.constant(null),
    propertiesJson: jsonText,
    setJson: fc.option(text),
    setOnceJson: fc.option(jsonText),
  },
  { noNullPrototype: true },
)

const rejectSource: fc.Arbitrary<RejectSource> = fc.record(
  {
    kind: fc.constantFrom('request' as const, 'item' as const, 'event' as const),
    isTruncated: fc.boolean(),
    protocol: fc.constantFrom('v0' as const, 'v1' as const),
    engage: fc.boolean(),
    ip: fc.constantFrom('', '203.0.113.7'),
    sentAtMs: fc.option(epochMs),
    personProcessingForcedOff: fc.boolean(),
  },
  { noNullPrototype: true },
)

const rejectFields = {
  projectId: uint32,
  token: text,
  lane: fc.constantFrom(...lanes),
  historicalMigration: fc.boolean(),
  importJobId: uint32,
  receivedAtMs: epochMs,
  capturedAtMs: epochMs,
  reason: text,
  field: text,
  uuid: text,
  name: text,
  distinctId: text,
  body: jsonText,
}
const capturedReject: fc.Arbitrary<CapturedReject> = fc.record(
  { ...rejectFields, source: rejectSource },
  { noNullPrototype: true, requiredKeys: Object.keys(rejectFields) as (keyof typeof rejectFields)[] },
)

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

describe('the record codec', () => {
  it('decodes to the encoded values, field by field', () => {
    const records = fc.array(
      fc.oneof(
        capturedEvent.map(event => ({ kind: 'event' as const, event })),
        fc.record({ event: capturedEvent, visitor }).map(({ event, visitor }) => ({
          ...{ kind: 'event' as const, event: { ...event, ip: '', visitor } },
        })),
        capturedReject.map(reject => ({ kind: 'reject' as const, reject })),
      ),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(records, expected => {
        const encoder = new RecordEncoder()
        for (const record of expected) {
          if (record.kind === 'event') encoder.addEvent(record.event)
          else encoder.addReject(record.reject)
        }
        assert.equal(encoder.recordCount, expected.length)
        const bytesBefore = encoder.bytes
        const { bytes, recordCount } = encoder.finish()
        assert.equal(bytes.length, bytesBefore)
        addRecordChecksums(bytes)
        assert.deepEqual(decodeRecords(bytes, recordCount), expected)
        assert.deepEqual(decodeRecords(bytes), expected)
      }),
      { numRuns: runs(25, 80) },
    )
  })

  it('decodes a recording field by field, also when it lies between events', () => {
    fc.assert(
      fc.property(capturedRecording, expected => {
        const event = encodedEvents([aCapturedEvent(1)]).bytes
        const { bytes } = encodeRecording(expected)
        assert.equal(bytes.length, bytes.buffer.byteLength, 'a separate buffer, ready to be transferred')
        const run = new Uint8Array(Buffer.concat([event, bytes, event]))
        addRecordChecksums(run)
        const [before, record, after] = decodeRecords(run, 3)
        assert.ok(before?.kind === 'event' && after?.kind === 'event' && record?.kind === 'recording')
        const items = new Uint8Array(record.recording.items)
        assert.deepEqual({ ...record.recording, items }, { ...expected, items: new Uint8Array(expected.items) })
      }),
      { numRuns: 80 },
    )
  })

  it('keeps the records of concurrent encoders apart', () => {
    const one = new RecordEncoder()
    const other = new RecordEncoder()
    one.addEvent(aCapturedEvent(1))
    other.addEvent(aCapturedEvent(2))
    one.addEvent(aCapturedEvent(3))
    const first = one.finish()
    other.addEvent(aCapturedEvent(4))
    const second = other.finish()
    addRecordChecksums(first.bytes)
    addRecordChecksums(second.bytes)
    assert.deepEqual(distinctIds(first.bytes), ['person-1', 'person-3'])
    assert.deepEqual(distinctIds(second.bytes), ['person-2', 'person-4'])
  })

  it('empties the encoder at `finish`, so that it can be used again', () => {
    const encoder = new RecordEncoder()
    encoder.addEvent(aCapturedEvent(1))
    encoder.finish()
    assert.deepEqual([encoder.recordCount, encoder.bytes, encoder.finish().bytes.length], [0, 0, 0])
    encoder.addEvent(aCapturedEvent(2))
    const { bytes } = encoder.finish()
    addRecordChecksums(bytes)
    assert.deepEqual(distinctIds(bytes), ['person-2'])
  })

  it('returns a long sequence of records in a separate buffer, ready to be transferred', () => {
    const encoder = new RecordEncoder()
    for (let n = 0; n < 400; n++) encoder.addEvent(aCapturedEvent(n))
    const { bytes } = encoder.finish()
    assert.equal(bytes.buffer.byteLength, bytes.byteLength)
    addRecordChecksums(bytes)
    assert.equal(decodeRecords(bytes, 400).length, 400)
  })

  it('sets the project of every record in an encoded sequence', () => {
    const events = encodedEvents([aCapturedEvent(1, { projectId: 0 }), aCapturedEvent(2, { projectId: 0 })])
    for (const { bytes } of [events, encodeRecording(aCapturedRecording(1, { projectId: 0 }))]) {
      writeProjectIdIntoRecords(bytes, 0x8765_4321)
      addRecordChecksums(bytes)
      for (const record of decodeRecords(bytes)) {
        const content = record.kind === 'event' ? record.event : record.kind === 'recording' && record.recording
        assert.ok(content !== false && content.projectId === 0x8765_4321)
      }
    }
  })

  it('refuses numbers that do not fit into 32 bits', () => {
    const encoder = new RecordEncoder()
    assert.throws(() => encoder.addEvent(aCapturedEvent(1, { projectId: -1 })), RangeError)
    assert.throws(() => encoder.addEvent(aCapturedEvent(1, { importJobId: 2 ** 32 })), RangeError)
    assert.equal(encoder.recordCount, 0)
    assert.throws(() => encodeRecording(aCapturedRecording(1, { projectId: -1 })), RangeError)
    assert.throws(() => encodeRecording(aCapturedRecording(1, { itemCount: 2 ** 32 })), RangeError)
  })

  it('tells where each record of a finished sequence begins, and refuses bytes that are not such a sequence', () => {
    const { bytes } = encodedEvents([aCapturedEvent(1), aCapturedEvent(2)])
    const places = addRecordChecksums(bytes)
    assert.equal(places.length, 3)
    assert.equal(places[2], bytes.length)
    assert.throws(() => addRecordChecksums(bytes.slice(0, bytes.length - 1)), RangeError)
  })
})

describe('an encoded event whose visitor is determined after encoding', () => {
  it('equals the encoding of the event with the visitor that was determined', () => {
    const json = fc.dictionary(text, fc.integer(), { maxKeys: 3 }).map(members => JSON.stringify(members))
    const settled = fc.record({
      event: capturedEvent,
      json,
      to: visitor,
      id: fc.option(text),
      hasMembers: fc.boolean(),
    })
    fc.assert(
      fc.property(settled, ({ event: { ...any }, json, to, id, hasMembers }) => {
        const before = { ...any, ip: '', visitor: null, propertiesJson: json }
        const run = new RecordEncoder()
        run.addEvent(aCapturedEvent(1))
        const start = run.bytes
        run.addEvent(before)
        const { bytes } = run.finish()
        const encoder = new RecordEncoder()
        const membersText = hasMembers ? '"\u00e9":"\u00e9"' : ''
        const visitor = createSettledVisitor(id, encodeVisitor(to), membersText)
        encoder.addSettled(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), start, visitor)
        const atOnce = new RecordEncoder()
        atOnce.addEvent(before, visitor)
        const added = json === '{}' ? `{${membersText}}` : `${json.slice(0, -1)},${membersText}}`
        const propertiesJson = hasMembers ? added : json
        const expected = { ...before, distinctId: id ?? before.distinctId, visitor: to, propertiesJson }
        assert.deepEqual(encoder.finish(), encodedEvents([expected]))
        assert.deepEqual(atOnce.finish(), encodedEvents([expected]))
      }),
    )
  })
})

describe('the record decoder', () => {
  it('reports a record as damaged if any byte of it changed, and reads the records around it', () => {
    const sound = sealed([aCapturedEvent(1), aCapturedEvent(2), aCapturedEvent(3)])
    const [, start, end] = addRecordChecksums(sound) as [number, number, number, number]
    for (let at = start; at < end; at++) {
      const bytes = sound.slice()
      bytes[at]! ^= 0x5a
      const records = decodeRecords(bytes, 3)
      assert.deepEqual(
        records.map(record => record.kind),
        at < start + 4 ? ['event', 'damaged', 'damaged'] : ['event', 'damaged', 'event'],
        `byte ${at - start} of the record`,
      )
    }
    const { bytes: recording } = encodeRecording(aCapturedRecording(1))
    addRecordChecksums(recording)
    for (let at = 0; at < recording.length; at++) {
      const bytes = recording.slice()
      bytes[at]! ^= 0x5a
      assert.equal(decodeRecords(bytes, 1)[0]!.kind, 'damaged', `byte ${at} of a recording`)
    }
  })

  it('counts every record that a damaged length makes unreadable', () => {
    const bytes = sealed([aCapturedEvent(1), aCapturedEvent(2), aCapturedEvent(3), aCapturedEvent(4)])
    const [, start] = addRecordChecksums(bytes) as [number, number]
    bytes[start + 3] = 0xff
    const records = decodeRecords(bytes, 4)
    assert.deepEqual(
      records.map(record => record.kind),
      ['event', 'damaged', 'damaged', 'damaged'],
    )
    assert.deepEqual(
      records.map(record => (record.kind === 'damaged' ? record.body.length : 0)),
      [0, bytes.length - start, 0, 0],
    )
    assert.equal(decodeRecords(bytes).length, 2)
  })

  it('treats a record of an unknown version as damaged', () => {
    const { bytes } = encodedEvents([aCapturedEvent(1), aCapturedEvent(2)])
    bytes[8] = 2
    addRecordChecksums(bytes)
    assert.deepEqual(
      decodeRecords(bytes, 2).map(record => record.kind),
      ['damaged', 'event'],
    )
  })

  it('never throws for arbitrary bytes, and returns the given number of records', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.integer({ min: 0, max: 5 }), (bytes, recordCount) => {
        const records = decodeRecords(bytes, recordCount)
        assert.equal(records.length, recordCount)
        assert.ok(records.every(record => record.kind === 'damaged'))
      }),
    )
  })

  it('skips records without decoding them and knows the size of the next record', () => {
    const events = [aCapturedEvent(1), aCapturedEvent(22), aCapturedEvent(333, { projectId: 9 })]
    const bytes = sealed(events)
    const places = addRecordChecksums(bytes)
    const cursor = new RecordCursor(bytes, 3)
    cursor.skip(2)
    assert.equal(cursor.nextBytes, places[3]! - places[2]!)
    assert.deepEqual([cursor.nextProjectId, cursor.nextKind], [9, kindEvent])
    assert.deepEqual(cursor.next(), { kind: 'event', event: events[2] })
    assert.ok(cursor.done)
    assert.deepEqual([cursor.nextProjectId, cursor.nextKind], [-1, -1])
  })
})

function sealed(events: readonly CapturedEvent[]): Uint8Array<ArrayBuffer> {
  const encoder = new RecordEncoder()
  for (const event of events) encoder.addEvent(event)
  encoder.addReject(aCapturedReject())
  const { bytes } = encoder.finish()
  const places = addRecordChecksums(bytes)
  return bytes.slice(0, places[events.length])
}

function distinctIds(bytes: Uint8Array): string[] {
  return decodeRecords(bytes).map(record => (record.kind === 'event' ? record.event.distinctId : record.kind))
}
