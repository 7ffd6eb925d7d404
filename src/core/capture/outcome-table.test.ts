import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { decoded, outcomesOf } from '../../../tests/support/incoming-requests.ts'
import { aCapturedEvent, aCapturedReject } from '../../../tests/support/values.ts'
import { type CapturedEvent, lanes } from '../events/captured-event.ts'
import { createSettledVisitor } from '../log/record-codec.ts'
import { runAllSteps } from '../maybe-steps.ts'
import type { VisitorFacts } from './cookieless-event.ts'
import {
  EventRewriter,
  findLeftOutReason,
  hasGeneratedUuidAt,
  hasRecordAt,
  hasVisitorAt,
  keepFirstRejects,
  laneAt,
  type OutcomeTable,
  removeUnstoredRecords,
  resourceAt,
  setEveryOutcomeCode,
  setLane,
  setOutcomeCode,
  TableRecords,
  TableWriter,
} from './outcome-table.ts'
import { getOverQuotaCode, importOnlyCode, okCode, outcomes, rejectCodes, unknownKeyCode } from './outcomes.ts'
import { eventResources } from './quota-resource.ts'

const shown = (ip: string): VisitorFacts => ({
  ...{ ip, userAgent: 'A', host: 'example.com', extra: '', timezone: '', isGeoipDisabled: false },
})

const noQuota = { resource: null, isNameless: false, refusesRequest: false }

function tableOf(events: readonly CapturedEvent[], rejectCount = 0): OutcomeTable {
  const writer = new TableWriter(events.length + rejectCount)
  for (const [row, event] of events.entries()) writer.addEvent(row, event, okCode, { isUuidMade: false, visitor: null })
  for (let row = events.length; row < events.length + rejectCount; row++)
    writer.addReject(row, aCapturedReject({ name: `reject ${row}` }), rejectCodes.missing_event_name, noQuota)
  return writer.finish()
}

const eventsOf = (table: OutcomeTable, traffic: 'live' | 'import' = 'live') =>
  decoded(table[traffic]).map(record => record.kind === 'event' && record.event)

const stepsOf = (table: OutcomeTable) => [...removeUnstoredRecords(table)].length

describe('a row of the outcome table', () => {
  it('keeps the value of each column whatever is written to the other columns', () => {
    for (const [code] of outcomes.entries()) {
      const writer = new TableWriter(1)
      writer.addEvent(0, aCapturedEvent(1, { name: '$ai_x', lane: 'ai' }), okCode, {
        isUuidMade: true,
        visitor: shown('203.0.113.7'),
      })
      const table = writer.finish()
      setOutcomeCode(table, 0, code)
      for (const lane of lanes) {
        setLane(table, 0, lane)
        assert.deepEqual(
          [
            laneAt(table, 0),
            resourceAt(table, 0),
            hasGeneratedUuidAt(table, 0) && hasVisitorAt(table, 0),
            outcomesOf(table)[0]!.split(':')[0],
          ],
          [lane, 'llm_events', true, outcomes[code]!.result],
        )
      }
    }
    assert.ok(outcomes.length <= 256, 'a code is a byte')
  })

  it('has a distinct outcome for every reason, and for every quota', () => {
    const texts = outcomes.map(({ result, reason }) => `${result} ${reason}`)
    assert.equal(new Set(texts).size, texts.length)
    for (const resource of eventResources)
      assert.deepEqual(outcomes[getOverQuotaCode(resource)]!.reason, `${resource}_over_quota`)
  })
})

describe('removing unstored records from sequences of encoded records', () => {
  it('keeps the remaining records unchanged and in order, whatever their size, for live events and imports alike', () => {
    const sizes = [1, 500, 40_000, 2_000, 300_000, 10, 7]
    const events = sizes.map((size, n) =>
      aCapturedEvent(n, {
        ...(n % 2 === 0 && { distinctId: 'Zoë 🐎', setJson: '{"b":1}' }),
        ...(n > 4 && { lane: 'historical', historicalMigration: true, importJobId: 1 }),
        propertiesJson: `{"x":"${'y'.repeat(size)}"}`,
      }),
    )
    const table = tableOf(events)
    for (const row of [0, 3, 5]) setOutcomeCode(table, row, importOnlyCode)
    runAllSteps(removeUnstoredRecords(table))
    const records = new TableRecords(table)
    assert.equal(records.at(4).uuid, events[4]!.uuid, 'rows point to their moved records')
    assert.equal(records.at(6).uuid, events[6]!.uuid)
    assert.deepEqual(
      [0, 1, 2, 3, 4, 5, 6].filter(row => !hasRecordAt(table, row)),
      [0, 3, 5],
    )
    assert.deepEqual(eventsOf(table), [events[1], events[2], events[4]])
    assert.deepEqual(eventsOf(table, 'import'), [events[6]])
  })

  it('keeps the sequences themselves if all records stay, and no sequence if no record stays', () => {
    const table = tableOf([aCapturedEvent(1), aCapturedEvent(2)], 1)
    const bytes = table.live!.bytes
    runAllSteps(removeUnstoredRecords(table))
    assert.equal(table.live!.bytes, bytes)
    setEveryOutcomeCode(table, unknownKeyCode)
    runAllSteps(removeUnstoredRecords(table))
    assert.equal(table.live, null)
    assert.equal(table.rejects!.recordCount, 1, 'rejects are not affected')
  })

  it('leaves a long sequence in a buffer of its own, which can be transferred to another thread', () => {
    const long = aCapturedEvent(2, { propertiesJson: `{"x":"${'y'.repeat(400_000)}"}` })
    const table = tableOf([aCapturedEvent(1), long])
    setOutcomeCode(table, 0, importOnlyCode)
    runAllSteps(removeUnstoredRecords(table))
    const { bytes } = table.live!
    assert.equal(bytes.byteLength, bytes.buffer.byteLength)
    assert.deepEqual(eventsOf(table), [long])
  })

  it('pauses in long sequences and between large records', () => {
    assert.equal(stepsOf(tableOf(Array.from({ length: 2_000 }, (_, n) => aCapturedEvent(n)))), 3)
    const large = { propertiesJson: `{"x":"${'y'.repeat(700_000)}"}` }
    assert.equal(stepsOf(tableOf(Array.from({ length: 6 }, (_, n) => aCapturedEvent(n, large)))), 3)
  })

  it('keeps only the first rejects, up to the limit', () => {
    const names = (table: OutcomeTable) =>
      decoded(table.rejects).map(record => record.kind === 'reject' && record.reject.name)
    const table = tableOf([aCapturedEvent(1)], 3)
    keepFirstRejects(table, 2)
    assert.deepEqual(
      [0, 1, 2, 3].map(row => hasRecordAt(table, row)),
      [true, true, true, false],
    )
    assert.deepEqual(names(table), ['reject 1', 'reject 2'])
    keepFirstRejects(table, 0)
    assert.equal(table.rejects, null)
  })
})

describe('the reason why nothing of a request was stored', () => {
  it('is that of the first event left out by a quota or by import-only mode, and null if any event is stored', () => {
    const table = tableOf([aCapturedEvent(1), aCapturedEvent(2)], 1)
    assert.equal(findLeftOutReason(table), null)
    setOutcomeCode(table, 0, getOverQuotaCode('exceptions'))
    assert.equal(findLeftOutReason(table), null, 'the other event is stored')
    setOutcomeCode(table, 1, getOverQuotaCode('events'))
    assert.equal(findLeftOutReason(table), 'exceptions_over_quota')
    setEveryOutcomeCode(table, importOnlyCode)
    assert.equal(findLeftOutReason(table), 'non_historical_import_drop')
    setEveryOutcomeCode(table, unknownKeyCode)
    assert.equal(findLeftOutReason(table), null)
    assert.equal(findLeftOutReason(tableOf([], 2)), null, 'rejects have another reason')
  })
})

it('consecutive events with the same data about their visitor share one object', () => {
  const writer = new TableWriter(4)
  for (const [row, ip] of ['1.1.1.1', '1.1.1.1', '2.2.2.2', '1.1.1.1'].entries())
    writer.addEvent(row, aCapturedEvent(row), okCode, { isUuidMade: false, visitor: shown(ip) })
  const { visitors } = writer.finish()
  assert.deepEqual(
    visitors.map(({ ip }) => ip),
    ['1.1.1.1', '1.1.1.1', '2.2.2.2', '1.1.1.1'],
  )
  assert.equal(new Set(visitors).size, 3)
})

describe('events that are rewritten because their visitor was determined after decoding', () => {
  it('stay in their places among unchanged events', () => {
    const events = [
      aCapturedEvent(1),
      aCapturedEvent(2, { lane: 'historical', historicalMigration: true }),
      aCapturedEvent(3, { ip: '', propertiesJson: '{"a":1.0}' }),
      aCapturedEvent(4, { lane: 'historical', historicalMigration: true }),
    ]
    const table = tableOf(events, 1)
    const rewriter = new EventRewriter(table)
    const distinctId = 'Zoë 🐎 with a longer name'
    const settled = createSettledVisitor(distinctId, '{}', '"b":2')
    const visitor = { stateful: null, location: null }
    const changed = { ...events[2]!, distinctId, visitor, propertiesJson: '{"a":1.0,"b":2}' }
    for (const row of [0, 1, 2, 3]) rewriter.add(row, row === 2 ? settled : null)
    assert.deepEqual(eventsOf(table), [events[0], events[2]], 'the table does not change before finish')
    rewriter.finish()
    assert.deepEqual(eventsOf(table), [events[0], changed])
    assert.deepEqual(eventsOf(table, 'import'), [events[1], events[3]])
    const records = new TableRecords(table)
    const ids = [0, 1, 2, 3].map(row => records.at(row).distinctId)
    assert.deepEqual(ids, ['person-1', 'person-2', changed.distinctId, 'person-4'])
    assert.equal(records.at(4).name, 'reject 4')
  })
})
