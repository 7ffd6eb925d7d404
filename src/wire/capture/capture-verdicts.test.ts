import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { IncomingEvent, IncomingItem } from '#core/capture/incoming-event.ts'
import { eventRefusals } from '#core/capture/normalize-event.ts'
import { type OutcomeTable, setEveryOutcomeCode, setOutcomeCode } from '#core/capture/outcome-table.ts'
import { getOverQuotaCode, rejectCodes, warningCodes } from '#core/capture/outcomes.ts'
import type { EventResource } from '#core/capture/quota-resource.ts'
import { runAllSteps } from '#core/maybe-steps.ts'
import { anIncomingEvent, aTable } from '../../../tests/support/incoming-requests.ts'
import { encodeVerdicts, verdictCountMax } from './capture-verdicts.ts'

interface Verdict {
  readonly index: number
  readonly uuid: string | null
  readonly event: string | null
  readonly result: string
  readonly reason: string | null
  readonly field: string | null
  readonly detail: string | null
}

const uuidOf = (row: number) => `0197c5a0-0000-7000-8000-${String(row).padStart(12, '0')}`
const sent = (row: number, over: Partial<IncomingEvent> = {}) => anIncomingEvent({ uuid: uuidOf(row), ...over })
const many = (count: number, itemOf: (row: number) => IncomingItem) =>
  Array.from({ length: count }, (_, row) => itemOf(row))
const noId = { distinctId: null }
const unreadable = { timestamp: 'long ago' }
const heatmap = { name: '$$heatmap' }

/** The table of a request whose items are judged one by one. */
const tableOf = (items: readonly IncomingItem[]) => aTable(items, { isItemised: true })

function leaveOut(table: OutcomeTable, rows: readonly number[], resource: EventResource = 'events'): OutcomeTable {
  for (const row of rows) setOutcomeCode(table, row, getOverQuotaCode(resource))
  return table
}

function answerOf(table: OutcomeTable) {
  const { status, body } = runAllSteps(encodeVerdicts(table))
  const { events, ...rest } = JSON.parse(body) as { events: Verdict[]; counts: object; [field: string]: unknown }
  return { status, events, body: rest }
}

const resultsOf = ({ events }: { events: readonly Verdict[] }) => events.map(({ result, reason }) => reason ?? result)

describe('the results for the items of a request', () => {
  it('are in the order of the request, whatever the order in which they were found', () => {
    const fault = {
      kind: 'fault',
      reason: 'invalid_shape',
      field: 'uuid',
      uuid: '',
      name: 'e',
      distinctId: '',
    } as const
    const items = [sent(0), sent(1, unreadable), { ...fault, isNameless: false }, sent(3)]
    const { events, body } = answerOf(tableOf(items))
    assert.deepEqual(
      events.map(({ index, result }) => [index, result]),
      [
        [0, 'ok'],
        [1, 'warning'],
        [2, 'reject'],
        [3, 'ok'],
      ],
    )
    assert.deepEqual(body.counts, { ok: 2, warning: 1, drop: 0, reject: 1 })
  })

  it('leave out accepted items first if there are too many, and then the last of the other items', () => {
    const items = many(3 * verdictCountMax, row => sent(row, row < 2 * verdictCountMax ? noId : {}))
    const { events, body } = answerOf(tableOf(items))
    assert.equal(events.length, verdictCountMax)
    assert.ok(events.every(({ index, result }) => result === 'reject' && index < verdictCountMax))
    assert.deepEqual(body.counts, { ok: verdictCountMax, warning: 0, drop: 0, reject: 2 * verdictCountMax })
    assert.equal(body.not_itemised, 20_000)
  })

  it('have a message for every reason, and truncate long event names', () => {
    const table = tableOf(eventRefusals.map((_, row) => sent(row, { ...noId, name: 'x'.repeat(5_000) })))
    for (const [row, refusal] of eventRefusals.entries()) setOutcomeCode(table, row, rejectCodes[refusal])
    for (const { reason, detail, event } of answerOf(table).events) {
      assert.ok(detail!.length > 10 && detail !== reason, String(reason))
      assert.equal(event!.length, 200)
    }
  })

  it('have the HTTP status of the first refusal', () => {
    const large = sent(0, { propertiesJson: `{"a":"${'x'.repeat(1_000_000)}"}` })
    const { status, body } = answerOf(tableOf([large, sent(1, noId)]))
    assert.deepEqual([status, body.code, body.type], [413, 'payload_too_large', 'validation_error'])
  })

  it('have the kind `drop` for events that a quota left out', () => {
    const items = () => tableOf([sent(0), sent(1, unreadable), sent(2, heatmap), sent(3, noId)])
    const all = answerOf(leaveOut(items(), [0, 1, 2]))
    assert.deepEqual(all.body.counts, { ok: 0, warning: 0, drop: 3, reject: 1 })
    const over = 'events_over_quota'
    assert.deepEqual(resultsOf(all), [over, over, over, 'missing_distinct_id'])
    const one = answerOf(leaveOut(items(), [1], 'exceptions'))
    assert.deepEqual(one.body.counts, { ok: 1, warning: 0, drop: 2, reject: 1 })
    assert.match(one.events[1]!.detail!, /over its quota of exceptions/)
  })

  it('distinguish two events with the same uuid if a quota left out one of them', () => {
    const table = tableOf([sent(7), sent(7)])
    assert.deepEqual(resultsOf(answerOf(leaveOut(table, [1]))), ['ok', 'events_over_quota'])
  })

  it('list events that a quota left out before accepted events, however many there are', () => {
    const late = leaveOut(
      tableOf(many(15_000, sent)),
      Array.from({ length: 3_000 }, (_, row) => 12_000 + row),
    )
    const told = answerOf(late)
    assert.deepEqual(told.body.counts, { ok: 12_000, warning: 0, drop: 3_000, reject: 0 })
    assert.equal(told.events.length, verdictCountMax)
    assert.equal(told.events.filter(({ result }) => result === 'drop').length, 3_000)
    const warned = tableOf(many(30_000, row => sent(row, row >= 25_000 ? unreadable : {})))
    setEveryOutcomeCode(warned, getOverQuotaCode('events'))
    const all = answerOf(warned)
    assert.deepEqual(all.body.counts, { ok: 0, warning: 0, drop: 30_000, reject: 0 })
    assert.ok(all.events.every(({ reason, index }, at) => reason === 'events_over_quota' && index === at))
    assert.equal(all.body.not_itemised, 20_000)
  })

  it('show generated uuids only for stored events', () => {
    const made = { uuid: null }
    const table = leaveOut(tableOf([sent(0, made), sent(1, { ...made, ...heatmap }), sent(2, made), sent(3)]), [2, 3])
    const [stored, ...others] = answerOf(table).events.map(({ uuid }) => uuid)
    assert.match(stored!, /^0197/)
    assert.deepEqual(others, [null, null, uuidOf(3)])
  })

  it('have the kind `warning` for events whose person processing was switched off, however many there are', () => {
    const table = tableOf([sent(0), sent(1, unreadable), sent(2, heatmap), sent(3)])
    setOutcomeCode(table, 0, warningCodes.person_processing_disabled)
    const told = answerOf(table)
    assert.deepEqual(told.body.counts, { ok: 1, warning: 2, drop: 1, reject: 0 })
    assert.deepEqual(resultsOf(told), ['person_processing_disabled', 'ignored_invalid_timestamp', 'heatmap', 'ok'])
    assert.match(told.events[0]!.detail!, /too many events/)
    const late = tableOf(many(30_000, sent))
    for (let row = 29_000; row < 30_000; row++) setOutcomeCode(late, row, warningCodes.person_processing_disabled)
    const { events, body } = answerOf(late)
    assert.deepEqual(body.counts, { ok: 29_000, warning: 1_000, drop: 0, reject: 0 })
    assert.equal(events.filter(({ result }) => result === 'warning').length, 1_000, 'before accepted ones')
  })

  it('distinguish events that a quota left out from events without person processing', () => {
    const table = leaveOut(tableOf([sent(0), sent(9), sent(2), sent(9)]), [0, 1])
    setOutcomeCode(table, 3, warningCodes.person_processing_disabled)
    const told = answerOf(table)
    assert.deepEqual(told.body.counts, { ok: 1, warning: 1, drop: 2, reject: 0 })
    assert.deepEqual(
      told.events.map(({ result }) => result),
      ['drop', 'drop', 'ok', 'warning'],
    )
  })

  it('are built in steps', () => {
    assert.equal([...encodeVerdicts(tableOf(many(2_000, sent)))].length, 4)
  })
})
