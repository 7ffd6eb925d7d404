import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  anIncomingEvent,
  anIncomingRequest,
  anIncomingV1Event,
  aTable,
  decoded,
  outcomesOf,
  receivedAtMs,
} from '../../../tests/support/incoming-requests.ts'
import type { CapturedReject, DecodedRecord } from '../events/captured-event.ts'
import type { IncomingV1Event, IncomingV1Request, ItemFault } from './incoming-event.ts'
import {
  isKeptRejectAt,
  laneAt,
  type OutcomeTable,
  readRequestRefusal,
  rejectCountMax,
  resourceAt,
  rowCountOf,
  TableRecords,
} from './outcome-table.ts'
import { prepareV1Events } from './prepare-events.ts'

const bad = anIncomingEvent({ distinctId: ' ' })
const fault: ItemFault = {
  kind: 'fault',
  reason: 'invalid_shape',
  field: 'uuid',
  uuid: '',
  name: 'e',
  distinctId: 'u',
  isNameless: false,
}

const uuidsOf = (records: readonly DecodedRecord[]) =>
  records.map(record => record.kind === 'event' && record.event.uuid)
const rejectsOf = (table: OutcomeTable): CapturedReject[] =>
  decoded(table.rejects).map(record => {
    assert.ok(record.kind === 'reject')
    return record.reject
  })
const rowsOf = <T>(table: OutcomeTable, read: (row: number) => T) =>
  Array.from({ length: rowCountOf(table) }, (_, row) => read(row))

describe('prepareEvents', () => {
  it('refuses the request for its first bad event', () => {
    const table = aTable([anIncomingEvent(), anIncomingEvent({ distinctId: ' ' }), anIncomingEvent({ name: '' })])
    assert.deepEqual(readRequestRefusal(table), {
      row: 1,
      reason: 'missing_distinct_id',
      field: 'batch.1.distinct_id',
      uuid: '',
      name: 'e',
      distinctId: ' ',
    })
  })

  it('leaves out import events whose time cannot be read, and keeps the rest', () => {
    const items = [anIncomingEvent({ timestamp: 'soon' }), anIncomingEvent(), anIncomingEvent({ name: '$exception' })]
    const table = aTable(items, { historicalMigration: true })
    assert.equal(readRequestRefusal(table), null)
    assert.deepEqual(outcomesOf(table), ['reject: timestamp_invalid', 'ok', 'ok'])
    assert.deepEqual([table.import?.recordCount, table.live?.recordCount], [1, 1])
    assert.deepEqual(
      rowsOf(table, row => laneAt(table, row)),
      ['historical', 'historical', 'error_tracking'],
    )
    assert.deepEqual(
      rejectsOf(table).map(({ reason, field, body, importJobId }) => ({ reason, field, body, importJobId })),
      [{ reason: 'timestamp_invalid', field: 'timestamp', body: '{"item":0}', importJobId: 1 }],
    )
  })

  it('includes the bodies of a bounded number of rejects', () => {
    const items = Array.from({ length: 250 }, () => anIncomingEvent({ timestamp: 'soon' }))
    const table = aTable(items, { historicalMigration: true })
    assert.equal(rowsOf(table, row => isKeptRejectAt(table, row)).filter(isReject => isReject).length, 250)
    assert.deepEqual(
      rejectsOf(table).map(({ body }) => body !== ''),
      Array.from({ length: 250 }, (_, index) => index < rejectCountMax),
    )
    assert.equal(table.import, null)
  })

  it('returns a row for each item, and the records of bad items in the order in which they are found', () => {
    const performance = { kind: 'performance', uuid: 'p' } as const
    const table = aTable([bad, performance, anIncomingEvent(), fault], { isItemised: true })
    assert.deepEqual(outcomesOf(table), [
      'reject: missing_distinct_id',
      'drop: dropped_performance_event',
      'ok',
      'reject: invalid_shape',
    ])
    const records = new TableRecords(table)
    assert.deepEqual(
      rowsOf(table, row => records.at(row).uuid.slice(0, 4)),
      ['', 'p', '0197', ''],
    )
    assert.deepEqual(
      rejectsOf(table).map(({ reason, field, body }) => [reason, field, body]),
      [
        ['invalid_shape', 'uuid', '{"item":3}'],
        ['missing_distinct_id', 'distinct_id', '{"item":0}'],
        ['dropped_performance_event', '', ''],
      ],
    )
    assert.equal(readRequestRefusal(table), null)
  })

  it('reports only the first of several problems of an item to the client', () => {
    const items = [
      anIncomingEvent({ timestamp: '?', name: 'x'.repeat(201) }),
      anIncomingEvent({ name: 'x'.repeat(201) }),
      anIncomingEvent({ name: '$$heatmap' }),
    ]
    assert.deepEqual(outcomesOf(aTable(items, { isItemised: true })), [
      'warning: ignored_invalid_timestamp',
      'warning: event_name_truncated',
      'drop: heatmap',
    ])
    assert.deepEqual(outcomesOf(aTable(items)), ['ok', 'ok', 'ok'])
  })

  it('records in each row which quota applies to it', () => {
    const tour = (key: string) => anIncomingEvent({ name: 'survey sent', propertiesJson: `{${key}:null}` })
    const items = [
      anIncomingEvent(),
      anIncomingEvent({ name: '$exception' }),
      anIncomingEvent({ name: '$ai_own' }),
      anIncomingEvent({
        name: 'survey sent',
        propertiesJson: '{"a":{"$product_tour_id":1},"b":"\\"$product_tour_id\\""}',
      }),
      tour('"$product_tour_id"'),
      tour('"\\u0024product_tour_id"'),
      { ...bad, name: '$exception' },
    ]
    const resources = (table: OutcomeTable) => rowsOf(table, row => resourceAt(table, row))
    const live = ['events', 'exceptions', 'llm_events', 'survey_responses', 'events', 'events']
    assert.deepEqual(resources(aTable(items)), [...live, 'exceptions'])
    assert.deepEqual(resources(aTable(items, { isItemised: true })), [...live, null], 'a separate reject')
    assert.deepEqual(resources(aTable(items, { historicalMigration: true })), Array(7).fill(null))
    const dayMs = 86_400_000
    const old = anIncomingEvent({ timestamp: '2020-01-01T00:00:00Z' })
    assert.deepEqual(
      resources(aTable([anIncomingEvent(), old, bad], {}, { rerouteOlderThanMs: dayMs })),
      ['events', null, null],
      'a bad event might have been an import',
    )
  })
})

describe('prepareV1Events', () => {
  const numbered = (index: number, over: Partial<IncomingV1Event> = {}) =>
    anIncomingV1Event({ uuid: `0197c5a0-0000-7000-8000-${String(index).padStart(12, '0')}`, ...over })
  const prepared = (items: IncomingV1Event[], over: Partial<IncomingV1Request> = {}) =>
    prepareV1Events(
      {
        ...{ ...anIncomingRequest([]), items, isItemised: true },
        ...{ captureInternal: false, sentAtMs: receivedAtMs, sdk: null, aiOnly: false },
        ...over,
      },
      { receivedAtMs, ip: '203.0.113.7' },
    )

  it('gives every event an outcome in the order of the request, and encodes the accepted events', () => {
    const items = [numbered(0), numbered(1, { name: '' }), numbered(2, { distinctId: 'guest' }), numbered(3)]
    const table = prepared(items)
    assert.deepEqual(outcomesOf(table), ['ok', 'reject: missing_event_name', 'ok: person_processing_disabled', 'ok'])
    const records = new TableRecords(table)
    assert.deepEqual(
      rowsOf(table, row => records.at(row).uuid),
      items.map(({ uuid }) => uuid),
    )
    assert.deepEqual(uuidsOf(decoded(table.live)), [items[0]!.uuid, items[2]!.uuid, items[3]!.uuid])
    assert.equal(table.import, null)
  })

  it('includes no more dropped events than a project may store, each with its reason', () => {
    const items = Array.from({ length: 150 }, (_, index) =>
      numbered(index, index % 2 ? { name: '' } : { timestamp: '' }),
    )
    const table = prepared(items)
    assert.deepEqual([table.live, table.import], [null, null])
    assert.deepEqual(
      outcomesOf(table),
      items.map(({ name }) => `reject: ${name === '' ? 'missing_event_name' : 'invalid_event_timestamp'}`),
    )
    const rejects = rejectsOf(table)
    assert.equal(rejects.filter(({ body }) => body !== '').length, rejectCountMax)
    const { reason, field, lane, body, uuid } = rejects[3]!
    assert.deepEqual(
      [reason, field, lane, body, uuid],
      ['missing_event_name', 'event', 'main', '{"item":3}', items[3]!.uuid],
    )
  })

  it('stores no address for events of the service’s own tools', () => {
    const [record] = decoded(prepared([numbered(0)], { captureInternal: true }).live)
    assert.ok(record?.kind === 'event')
    assert.equal(record.event.ip, '127.0.0.1')
  })
})
