import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { aCapturedEvent, aCapturedReject } from '../../../tests/support/captured-events.ts'
import { type CapturedEvent, edgeNote } from '../events/captured-event.ts'
import { type EncodedRecords, RecordEncoder, sealRecords } from './record-codec.ts'
import { decodeRecords } from './record-decoder.ts'
import { type EventGlance, filterEvents } from './record-filter.ts'

function encoded(events: readonly CapturedEvent[]): EncodedRecords {
  const encoder = new RecordEncoder()
  for (const event of events) encoder.addEvent(event)
  return encoder.finish()
}

function filtered(records: EncodedRecords, keeps: (event: EventGlance) => boolean) {
  const steps = filterEvents(records, keeps)
  for (let stepCount = 0; ; stepCount++) {
    const step = steps.next()
    if (step.done === true) return { stepCount, records: step.value }
  }
}

function eventsOf(records: EncodedRecords): CapturedEvent[] {
  sealRecords(records.bytes)
  return decodeRecords(records.bytes, records.recordCount).map(record => {
    assert.equal(record.kind, 'event')
    return (record as Extract<typeof record, { kind: 'event' }>).event
  })
}

const odd = { distinctId: 'Zoë 🐎', ip: '::1', propertiesJson: '{"a":"ü"}', setJson: '{"b":1}', setOnceJson: '{}' }

describe('filtering encoded events', () => {
  it('keeps others as they were, in their order, whatever their size', () => {
    const sizes = [1, 500, 40_000, 2_000, 300_000, 10]
    const events = sizes.map((size, n) =>
      aCapturedEvent(n, {
        ...(n % 2 === 0 && odd),
        name: n % 3 === 0 ? 'gone' : `kept ${n}`,
        propertiesJson: `{"x":"${'y'.repeat(size)}"}`,
      }),
    )
    const { records } = filtered(encoded(events), event => event.name !== 'gone')
    assert.deepEqual(
      eventsOf(records!),
      events.filter(event => event.name !== 'gone'),
    )
  })

  it('shows what an event is', () => {
    const events = [
      aCapturedEvent(1, { name: '$exception', lane: 'error_tracking' }),
      aCapturedEvent(2, { ...odd, name: 'größe', lane: 'historical', historicalMigration: true, importJobId: 1 }),
    ]
    const seen: unknown[] = []
    filtered(encoded(events), ({ name, uuid, lane, historicalMigration }) => {
      seen.push({ name, uuid, lane, historicalMigration })
      return true
    })
    assert.deepEqual(
      seen,
      events.map(({ name, uuid, lane, historicalMigration }) => ({ name, uuid, lane, historicalMigration })),
    )
  })

  it('finds a property at the top level only, however its key is written', () => {
    const found = (propertiesJson: string, over: Partial<CapturedEvent> = {}) => {
      let has = false
      filtered(encoded([aCapturedEvent(1, { ...over, propertiesJson })]), event => {
        has = event.hasProperty('$tour')
        return true
      })
      return has
    }
    assert.equal(found('{"$tour":null}'), true)
    assert.equal(found('{"$tour":1}', odd), true)
    assert.equal(found('{"\\u0024tour":1}'), true)
    assert.equal(found('{"a":{"$tour":1}}'), false)
    assert.equal(found('{"a":"\\"$tour\\""}'), false)
    assert.equal(found('{}', { setJson: '{"$tour":1}' }), false)
    assert.equal(found('{"__proto__":{"$tour":1}}'), false)
  })

  it('switches persons off in the record, which it notes beside what was noted before', () => {
    const events = [
      aCapturedEvent(1, { ...odd, notes: edgeNote.nameCut }),
      aCapturedEvent(2, { lane: 'ai' }),
      aCapturedEvent(3),
    ]
    const { records } = filtered(encoded(events), event => {
      if (event.uuid !== events[2]!.uuid) event.switchPersonsOff()
      return true
    })
    const notes = edgeNote.personsSwitchedOff
    assert.deepEqual(eventsOf(records!), [
      { ...events[0]!, lane: 'overflow', personProcessingForcedOff: true, notes: edgeNote.nameCut | notes },
      { ...events[1]!, personProcessingForcedOff: true, notes },
      events[2],
    ])
  })

  it('gives back the run itself when all stays, and nothing when nothing does', () => {
    const records = encoded([aCapturedEvent(1), aCapturedEvent(2)])
    assert.equal(filtered(records, () => true).records, records)
    assert.equal(filtered(records, () => false).records, null)
  })

  it('leaves records alone that are no events', () => {
    const encoder = new RecordEncoder()
    encoder.addEvent(aCapturedEvent(1))
    encoder.addReject(aCapturedReject())
    const { records } = filtered(encoder.finish(), () => false)
    assert.equal(records!.recordCount, 1)
    sealRecords(records!.bytes)
    assert.deepEqual(decodeRecords(records!.bytes), [{ kind: 'reject', reject: aCapturedReject() }])
  })

  it('lets go of a long run, so that it can be transferred', () => {
    const long = { propertiesJson: `{"x":"${'y'.repeat(400_000)}"}` }
    const { records } = filtered(
      encoded([aCapturedEvent(1, { name: 'gone' }), aCapturedEvent(2, long)]),
      event => event.name !== 'gone',
    )
    assert.equal(records!.bytes.byteLength, records!.bytes.buffer.byteLength)
    assert.equal(eventsOf(records!)[0]!.propertiesJson, long.propertiesJson)
  })

  it('takes a breath in long runs and between large properties', () => {
    assert.equal(filtered(encoded(Array.from({ length: 1_000 }, (_, n) => aCapturedEvent(n))), () => true).stepCount, 3)
    const large = { propertiesJson: `{"x":"${'\\n'.repeat(50_000)}"}` }
    const run = encoded([aCapturedEvent(1, large), aCapturedEvent(2, large), aCapturedEvent(3, large)])
    assert.equal(filtered(run, event => !event.hasProperty('$tour')).stepCount, 3)
  })

  it('refuses bytes that are no run of records', () => {
    assert.throws(() => filtered({ bytes: new Uint8Array(200), recordCount: 1 }, () => true), RangeError)
  })
})
