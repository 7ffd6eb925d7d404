import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { convertRecord } from './convert-record.ts'
import { type Conversion, RecordReject } from './imported-event.ts'

const record = { value: {}, table: null, ordinal: 1 }
const eventOf = (text: string): Conversion => ({
  events: [{ uuid: 'u', event: 'Tap', distinctId: 'ada', timeUs: 7, properties: { text } }],
})

describe('the outcome of a record', () => {
  it("is the converter's outcome, with a thrown reject as a value", () => {
    const events = eventOf('x')
    assert.equal(convertRecord({ convert: () => events }, record), events)
    const refuse = (detail?: string) => ({
      convert: () => {
        throw new RecordReject('event_missing', 'event', detail)
      },
    })
    assert.deepEqual(convertRecord(refuse(), record), { rejected: { reason: 'event_missing', field: 'event' } })
    assert.deepEqual(convertRecord(refuse('no name'), record), {
      rejected: { reason: 'event_missing', field: 'event', detail: 'no name' },
    })
  })

  it('is a skip if no event can result, so that the record does not count as converted', () => {
    const ids = { userId: 'ada', deviceId: 'd', timeUs: 7, properties: {} }
    const group = { type: 'org', key: 'acme', properties: null, distinctId: 'ada', timeUs: 7 }
    const outcomeOf = (said: object) => convertRecord({ convert: () => ({ events: [], ...said }) }, record)
    for (const nothing of [{}, { groups: [], links: [] }, { links: [{ ...ids, deviceId: 'ada' }] }])
      assert.deepEqual(outcomeOf(nothing), { skipped: 'filtered' })
    for (const said of [{ groups: [group] }, { links: [ids] }])
      assert.deepEqual(outcomeOf(said), { events: [], ...said })
  })

  it('is an exception when the converter throws anything but a reject', () => {
    const convert = () => {
      throw new TypeError('a mistake')
    }
    assert.throws(() => convertRecord({ convert }, record), TypeError)
  })

  it('is a reject when an event has more bytes than may be sent', () => {
    // Two bytes per character, plus name, id and `{"text":""}`, plus the envelope.
    const fitting = 'é'.repeat(499_822)
    assert.equal('events' in convertRecord({ convert: () => eventOf(fitting) }, record, 499_822), true)
    assert.partialDeepStrictEqual(convertRecord({ convert: () => eventOf(`${fitting}é`) }, record, 499_823), {
      rejected: { reason: 'record_too_large', field: null },
    })
  })
})
