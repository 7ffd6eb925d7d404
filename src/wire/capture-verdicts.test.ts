import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ItemVerdict, itemVerdictCountMax, VerdictCollector } from '#core/events/item-verdicts.ts'
import { eventRefusals } from '#core/events/normalize-event.ts'
import { allDropped, encodeVerdicts, withOverQuota, withoutPersons } from './capture-verdicts.ts'

const uuidOf = (index: number) => `0197c5a0-0000-7000-8000-${String(index).padStart(12, '0')}`

function verdict(index: number, over: Partial<ItemVerdict> = {}): ItemVerdict {
  return { index, uuid: uuidOf(index), event: 'e', result: 'ok', reason: null, field: null, ...over }
}

function verdictsOf(...verdicts: readonly ItemVerdict[]) {
  const collector = new VerdictCollector(verdicts.length)
  for (const each of verdicts) collector.add(each)
  return collector.finish()
}

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
    assert.equal(answerOf({ itemCount: 30_000, items, counts }).body.not_itemised, 20_000)
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

  it('turn to drops where a quota left events out, counted past what is written out', () => {
    const heatmap = { result: 'drop', reason: 'heatmap' } as const
    const reject = { result: 'reject', reason: 'missing_distinct_id', field: 'distinct_id' } as const
    const given = verdictsOf(verdict(0), verdict(1, { result: 'warning' }), verdict(2, heatmap), verdict(3, reject))
    const overQuota = [0, 1, 2].map(index => ({ uuid: uuidOf(index), resource: 'events' as const }))
    const { counts, items } = withOverQuota(given, { count: 3, events: overQuota })
    assert.deepEqual(counts, { ok: 0, warning: 0, drop: 3, reject: 1 })
    assert.deepEqual(
      items.map(({ reason }) => reason),
      ['events_over_quota', 'events_over_quota', 'events_over_quota', 'missing_distinct_id'],
    )
    const many = { itemCount: 5, counts: { ok: 5, warning: 0, drop: 0, reject: 0 }, items: [verdict(0)] }
    const hidden = [0, 7, 8].map(index => ({ uuid: uuidOf(index), resource: 'exceptions' as const }))
    const dropped = withOverQuota(many, { count: 3, events: hidden })
    assert.deepEqual(dropped.counts, { ok: 2, warning: 0, drop: 3, reject: 0 })
    const cut = withOverQuota(many, { count: 4, events: hidden })
    assert.deepEqual(cut.counts, { ok: 1, warning: 0, drop: 4, reject: 0 })
    assert.equal(withOverQuota(many, { count: 0, events: [] }), many)
    assert.match(answerOf(dropped).body.events[0].detail, /over its quota of exceptions/)
  })

  it('turn to warnings where persons were switched off, counted past what is written out', () => {
    const cut = { result: 'warning', reason: 'distinct_id_truncated', field: 'distinct_id' } as const
    const given = verdictsOf(verdict(0), verdict(1, cut), verdict(2, { result: 'drop', reason: 'heatmap' }), verdict(3))
    const told = withoutPersons(given, new Set([0, 1, 2].map(uuidOf)))
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
    const many = { itemCount: 5, counts: { ok: 5, warning: 0, drop: 0, reject: 0 }, items: [verdict(0)] }
    const { counts } = withoutPersons(many, new Set([0, 7, 8].map(uuidOf)))
    assert.deepEqual(counts, { ok: 2, warning: 3, drop: 0, reject: 0 })
    assert.match(answerOf(told).body.events[0].detail, /too many events/)
  })

  it('are drops throughout where nothing is wanted', () => {
    const { status, body } = answerOf(allDropped({ itemCount: 2 }, 'non_historical_import_drop'))
    assert.deepEqual([status, body.status, body.counts.drop, body.events.length], [200, 'Ok', 2, 2])
  })
})
