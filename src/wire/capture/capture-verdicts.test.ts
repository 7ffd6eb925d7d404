import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ItemVerdict, itemVerdictCountMax, VerdictCollector } from '#core/capture/item-verdicts.ts'
import { eventRefusals } from '#core/capture/normalize-event.ts'
import { encodeVerdicts, verdictsGiven, withOverQuota, withoutPersons } from './capture-verdicts.ts'

const uuidOf = (index: number) => `0197c5a0-0000-7000-8000-${String(index).padStart(12, '0')}`

function verdict(index: number, over: Partial<ItemVerdict> = {}): ItemVerdict {
  return { index, uuid: uuidOf(index), event: 'e', result: 'ok', reason: null, field: null, ...over }
}

function verdictsOf(...verdicts: readonly ItemVerdict[]) {
  const collector = new VerdictCollector(verdicts.length)
  for (const each of verdicts) {
    if (each.result === 'reject') collector.add(each)
    else collector.addInMain(each)
  }
  return collector.finish()
}

/** As a quota leaves out the events of these records. */
function leftOut(recordCount: number, records: readonly number[], resource: 'events' | 'exceptions' = 'events') {
  const marks = new Uint8Array(recordCount)
  for (const record of records) marks[record] = 1
  const events = records.slice(0, 20_000).map(record => ({ uuid: uuidOf(record), name: 'e', resource }))
  return { count: records.length, events, marks }
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => from + at)

const answerOf = (verdicts: ReturnType<typeof verdictsOf>) => {
  const { status, body } = encodeVerdicts(verdicts)
  return { status, body: JSON.parse(body) }
}

describe('verdicts', () => {
  it('stand in the order of the request, whatever the order they were found in', () => {
    const reject = { result: 'reject', reason: 'invalid_shape', field: 'uuid' } as const
    const { items, counts } = verdictsOf(verdict(2, reject), verdict(0), verdict(1, { result: 'warning' }), verdict(3))
    assert.deepEqual(
      items.map(({ index }) => index),
      [0, 1, 2, 3],
    )
    assert.deepEqual(counts, { ok: 2, warning: 1, drop: 0, reject: 1 })
  })

  it('leave room for what is not well, of which the first are written out when there is too much', () => {
    const collector = new VerdictCollector(3 * itemVerdictCountMax)
    for (let index = 0; index < 2 * itemVerdictCountMax; index++)
      collector.add(verdict(index, { result: 'reject', reason: 'missing_distinct_id', field: 'distinct_id' }))
    for (let index = 2 * itemVerdictCountMax; index < 3 * itemVerdictCountMax; index++) collector.add(verdict(index))
    const { items, counts } = collector.finish()
    assert.equal(items.length, itemVerdictCountMax)
    assert.ok(items.every(({ index, result }) => result === 'reject' && index < itemVerdictCountMax))
    assert.deepEqual([counts.ok, counts.reject], [itemVerdictCountMax, 2 * itemVerdictCountMax])
    assert.deepEqual(collector.rejectedByReason, { missing_distinct_id: 2 * itemVerdictCountMax })
    assert.equal(answerOf(collector.finish()).body.not_itemised, 20_000)
  })

  it('have a sentence for every reason, and keep a name short', () => {
    const reject = (index: number, reason: string) =>
      verdict(index, { result: 'reject', reason, event: 'x'.repeat(5_000) })
    const { body } = answerOf(verdictsOf(verdict(9), ...eventRefusals.map((reason, index) => reject(index, reason))))
    for (const { reason, detail, event } of body.events.slice(0, -1)) {
      assert.ok(detail.length > 10 && detail !== reason, reason)
      assert.equal(event.length, 200)
    }
  })

  it('have the status that the first refusal alone would have', () => {
    const reject = { result: 'reject', reason: 'event_too_large', field: 'properties' } as const
    const { status, body } = answerOf(verdictsOf(verdict(0, reject)))
    assert.deepEqual([status, body.code, body.type], [413, 'payload_too_large', 'validation_error'])
  })

  it('turn to drops where a quota left events out', () => {
    const heatmap = { result: 'drop', reason: 'heatmap' } as const
    const reject = { result: 'reject', reason: 'missing_distinct_id', field: 'distinct_id' } as const
    const given = verdictsOf(verdict(0), verdict(1, { result: 'warning' }), verdict(2, heatmap), verdict(3, reject))
    const { counts, items } = withOverQuota(given, leftOut(3, [0, 1, 2]))
    assert.deepEqual(counts, { ok: 0, warning: 0, drop: 3, reject: 1 })
    assert.deepEqual(
      items.map(({ reason }) => reason),
      ['events_over_quota', 'events_over_quota', 'events_over_quota', 'missing_distinct_id'],
    )
    const one = withOverQuota(given, leftOut(3, [1], 'exceptions'))
    assert.deepEqual(one.counts, { ok: 1, warning: 0, drop: 2, reject: 1 })
    assert.match(answerOf(one).body.events[1].detail, /over its quota of exceptions/)
    assert.equal(withOverQuota(given, leftOut(3, [])), given)
  })

  it('tell two events of one uuid apart where a quota left one out', () => {
    const uuid = uuidOf(7)
    const given = verdictsOf(verdict(0, { uuid }), verdict(1, { uuid }))
    const { items } = withOverQuota(given, { ...leftOut(2, [1]), events: [{ uuid, name: 'e', resource: 'events' }] })
    assert.deepEqual(
      items.map(({ result }) => result),
      ['ok', 'drop'],
    )
  })

  it('are written out before what is well where a quota left events out, however many there are', () => {
    const late = verdictsOf(...range(0, 15_000).map(index => verdict(index)))
    const told = withOverQuota(late, leftOut(15_000, range(12_000, 15_000)))
    assert.deepEqual(told.counts, { ok: 12_000, warning: 0, drop: 3_000, reject: 0 })
    assert.equal(told.items.length, itemVerdictCountMax)
    assert.equal(told.items.filter(({ result }) => result === 'drop').length, 3_000)
    const warning = { result: 'warning', reason: 'distinct_id_truncated', field: 'distinct_id' } as const
    const many = verdictsOf(...range(0, 30_000).map(index => verdict(index, index >= 25_000 ? warning : {})))
    const all = withOverQuota(many, leftOut(30_000, range(0, 30_000)))
    assert.deepEqual(all.counts, { ok: 0, warning: 0, drop: 30_000, reject: 0 })
    assert.ok(all.items.every(({ reason }, at) => reason === 'events_over_quota' && all.items[at]!.index === at))
    assert.equal(answerOf(all).body.not_itemised, 20_000)
  })

  it('show a uuid that was made here of what is stored, and of nothing else', () => {
    const isUuidMade = true
    const heatmap = verdict(1, { result: 'drop', reason: 'heatmap', isUuidMade })
    const given = verdictsOf(verdict(0, { isUuidMade }), heatmap, verdict(2, { isUuidMade }), verdict(3))
    const shown = answerOf(withOverQuota(given, leftOut(4, [2, 3]))).body.events
    assert.deepEqual(
      shown.map(({ uuid }: { uuid: string | null }) => uuid),
      [uuidOf(0), null, null, uuidOf(3)],
    )
  })

  it('turn to warnings where persons were switched off, however many there are', () => {
    const cut = { result: 'warning', reason: 'distinct_id_truncated', field: 'distinct_id' } as const
    const given = verdictsOf(verdict(0), verdict(1, cut), verdict(2, { result: 'drop', reason: 'heatmap' }), verdict(3))
    const told = withoutPersons(given, leftOut(4, [0, 1, 2]))
    assert.deepEqual(told.counts, { ok: 1, warning: 2, drop: 1, reject: 0 })
    assert.deepEqual(
      told.items.map(({ result, reason }) => [result, reason]),
      [
        ['warning', 'person_processing_disabled'],
        ['warning', 'distinct_id_truncated'],
        ['drop', 'heatmap'],
        ['ok', null],
      ],
    )
    assert.match(answerOf(told).body.events[0].detail, /too many events/)
    const many = verdictsOf(...range(0, 30_000).map(index => verdict(index)))
    const late = withoutPersons(many, leftOut(30_000, range(29_000, 30_000)))
    assert.deepEqual(late.counts, { ok: 29_000, warning: 1_000, drop: 0, reject: 0 })
    assert.equal(late.items.filter(({ result }) => result === 'warning').length, 1_000, 'before what is well')
  })

  it('tell events apart where a quota left out some and persons were switched off for others', () => {
    const uuid = uuidOf(9)
    const given = verdictsOf(verdict(0), verdict(1, { uuid }), verdict(2), verdict(3, { uuid }))
    const hot = { events: [{ uuid, name: 'e' }], marks: Uint8Array.of(0, 1) }
    const told = withoutPersons(withOverQuota(given, leftOut(4, [0, 1])), hot)
    assert.deepEqual(told.counts, { ok: 1, warning: 1, drop: 2, reject: 0 })
    assert.deepEqual(
      told.items.map(({ result }) => result),
      ['drop', 'drop', 'ok', 'warning'],
    )
  })

  it('are drops throughout where nothing is wanted', () => {
    const reject = { result: 'reject', reason: 'invalid_shape', field: 'uuid', uuid: null } as const
    const given = verdictsOf(verdict(0, { isUuidMade: true }), verdict(1), verdict(2, reject))
    const { status, body } = answerOf(verdictsGiven(given).allDropped('non_historical_import_drop'))
    assert.deepEqual([status, body.status, body.counts.drop, body.events.length], [200, 'Ok', 3, 3])
    assert.deepEqual(
      body.events.map(({ uuid, event, reason, field }: ItemVerdict) => [uuid, event, reason, field]),
      [null, uuidOf(1), null].map(uuid => [uuid, 'e', 'non_historical_import_drop', null]),
    )
  })
})
