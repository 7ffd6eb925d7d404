import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { decodeRecords } from '../../../tests/support/decode-records.ts'
import { aCapturedEvent, aCapturedReject } from '../../../tests/support/values.ts'
import { edgeNote } from '../events/captured-event.ts'
import { addRecordChecksums, RecordEncoder } from './record-codec.ts'
import { RecordView } from './record-view.ts'

const odd = { distinctId: 'Zoë 🐎', ip: '::1', propertiesJson: '{"a":"ü"}', setJson: '{"b":1}', setOnceJson: '{}' }

describe('a view of encoded records', () => {
  it('reads the fields of records with and without non-ASCII text', () => {
    const events = [aCapturedEvent(1), aCapturedEvent(2, { ...odd, name: 'größe' })]
    const rejects = [
      aCapturedReject({ uuid: events[0]!.uuid, name: 'e' }),
      aCapturedReject({ name: 'größe', distinctId: 'Zoë 🐎', field: 'batch.3.uuid' }),
    ]
    const encoder = new RecordEncoder()
    const starts = [...events, ...rejects].map(record => {
      const start = encoder.bytes
      if ('body' in record) encoder.addReject(record)
      else encoder.addEvent(record)
      return start
    })
    const view = new RecordView(encoder.finish().bytes)
    const seen = starts.map(start => {
      const { uuid, name, distinctId } = view.moveTo(start)
      return { uuid, name, distinctId }
    })
    assert.deepEqual(
      seen,
      [...events, ...rejects].map(({ uuid, name, distinctId }) => ({ uuid, name, distinctId })),
    )
    assert.deepEqual(
      starts.slice(2).map(start => view.moveTo(start).field),
      rejects.map(({ field }) => field),
    )
    assert.deepEqual(
      starts.map(start => view.moveTo(start).size),
      starts.map((start, index) => (starts[index + 1] ?? starts[3]! + view.moveTo(starts[3]!).size) - start),
    )
    const uuid = new Uint8Array(40)
    view.moveTo(starts[1]!).copyUuid(uuid, 4)
    assert.equal(Buffer.from(uuid).toString('latin1', 4), events[1]!.uuid)
  })

  it('switches person processing off in the record, and adds this to the record’s notes', () => {
    const events = [
      aCapturedEvent(1, { ...odd, notes: edgeNote.nameCut }),
      aCapturedEvent(2, { lane: 'ai' }),
      aCapturedEvent(3),
    ]
    const encoder = new RecordEncoder()
    const starts = events.map(event => {
      const start = encoder.bytes
      encoder.addEvent(event)
      return start
    })
    const { bytes } = encoder.finish()
    const view = new RecordView(bytes)
    view.moveTo(starts[0]!).switchPersonsOff()
    view.moveTo(starts[1]!).switchPersonsOff()
    addRecordChecksums(bytes)
    const notes = edgeNote.personsSwitchedOff
    assert.deepEqual(
      decodeRecords(bytes).map(record => record.kind === 'event' && record.event),
      [
        { ...events[0]!, lane: 'overflow', personProcessingForcedOff: true, notes: edgeNote.nameCut | notes },
        { ...events[1]!, personProcessingForcedOff: true, notes },
        events[2],
      ],
    )
  })

  it('refuses an offset at which no record begins', () => {
    assert.throws(() => new RecordView(new Uint8Array(200)).moveTo(0), RangeError)
  })
})
