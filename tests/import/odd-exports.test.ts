// Exports as found in practice rather than as documented: Matomo's answers with all numbers as texts and half of the
// fields missing, and GA4 flattened by a warehouse connector. Nothing in them may stop an import or disappear
// uncounted.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { plainCsv } from '#core/csv.ts'
import type { JsonObject } from '#core/json.ts'
import { type ParsedRecord, parseJsonLine } from '#importer/read/parse-record.ts'
import { splitRecords } from '#importer/read/split-records.ts'
import { createRowParser } from '#importer/read/text-records.ts'
import { convertRecord } from '#importer/records/convert-record.ts'
import { createRecordEvents } from '#importer/records/generated-events.ts'
import { createMemoryLedger } from '#importer/records/import-ledger.ts'
import type { ImportSource } from '#importer/records/import-source.ts'
import type { ImportedEvent } from '#importer/records/imported-event.ts'
import { amplitude } from '#importer/sources/amplitude/amplitude.ts'
import { ga4 } from '#importer/sources/ga4/ga4.ts'
import { generic } from '#importer/sources/generic/generic.ts'
import { matomo } from '#importer/sources/matomo/matomo.ts'
import { posthog } from '#importer/sources/posthog/posthog.ts'
import { conversionTimeMs } from '../support/convert-records.ts'

/** 2024-05-01T10:00:00Z, and the site's local time two hours ahead. */
const start = 1714557600
const shown = String(start + 7_200)
const ids = { idSite: '1', visitorId: 'a13b7c5a62f72dea', firstActionTimestamp: String(start) }
const event = {
  type: 'event',
  url: 'http://shop.example.test/movie',
  pageIdAction: '26',
  pageId: '50',
  eventCategory: 'Movie',
  eventAction: 'Purchase',
  eventValue: '9.66',
  bandwidth: null,
  icon: 'plugins/Morpheus/images/event.png',
  timestamp: shown,
}
const goal = { type: 'goal', goalName: 'triggered', goalPageId: '1', timestamp: shown }
const cart = {
  type: 'ecommerceAbandonedCart',
  revenue: '10000000000',
  items: '1',
  itemDetails: [{ itemSKU: 'sku-007', price: '10000000000', quantity: '1', categories: ['a', 'b'] }],
  timestamp: shown,
}
const odds = {
  customVariables: [{ customVariableName1: 'scope', customVariableValue1: 'visit' }],
  latitude: null,
  resolution: 'unknown',
  daysSinceLastEcommerceOrder: '0',
}
const visits = [
  { ...ids, ...odds, idVisit: '10', userId: null, actionDetails: [event, goal, cart] },
  {
    ...ids,
    idVisit: '11',
    userId: 'ada@shop.example.test',
    actionDetails: { 1: event, 3: { ...event, pageId: '51' } },
  },
  { ...ids, idVisit: '12', actionDetails: [goal] },
  { ...ids, idVisit: '13', actionDetails: [] },
  { ...ids, idVisit: '14', firstActionTimestamp: undefined, actionDetails: [event] },
  { ...ids, idVisit: '15', visitorId: undefined, fingerprint: '14db763aafccd039', actionDetails: [event] },
  { ...ids, idVisit: '16', actionDetails: [{ ...event, timestamp: undefined }] },
  { from: 'an answer', visit: { ...ids, idVisit: '17', actionDetails: [event] } },
]
const jsonLines = `\ufeff${visits.map(visit => JSON.stringify(visit)).join('\r\n')}\r\n\r\n{"idVisit":`

const flatRows = `_fivetran_id,date,name,platform,timestamp,user_id,user_pseudo_id,param_ga_session_id
1,2024-09-10,purchase,web,2024-09-10 12:35:00,user_123,pseudo_123,session_123
2,2024-09-10,"add, to ""cart""",app,2024-09-10 12:40:00,user_456,pseudo_456,
3,2024-09-10,scroll
`

describe('exports as found in practice', () => {
  it('every action in a Matomo visit gives an event, or the visit counts with the reason', async () => {
    assert.deepEqual(await tally(matomo, 'json', jsonLines), {
      events: 5,
      'records with events': 2,
      'skipped goal_conversion_duplicate': 1,
      'skipped visit_without_actions': 1,
      'skipped blank_line': 1,
      'rejected timestamp_zone_unknown at firstActionTimestamp': 1,
      'rejected distinct_id_missing at distinct_id': 1,
      'rejected timestamp_missing at actionDetails[0].timestamp': 1,
      'rejected event_missing at actionDetails': 1,
      'rejected json_syntax at null': 1,
    })
  })

  it('flattened GA4 rows are rejected one by one, since they lack the name and time of the event', async () => {
    assert.deepEqual(await tally(ga4, 'csv', flatRows), {
      'rejected event_missing at event_name': 2,
      'rejected csv_column_count at null': 1,
    })
  })
})

describe('a text of JSON nested too deeply to be parsed', () => {
  const deep = `{"id":7,"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  const at = '2024-05-01T12:00:00Z'
  const outcomeOf = (source: ImportSource, value: JsonObject, config: JsonObject = {}) => {
    const converter = source.prepare(config, { nowMs: conversionTimeMs, holdLiveWindow: false, findFact: () => null })
    return convertRecord(converter, { value, table: null, ordinal: 1 })
  }

  it('counts as no object where an object is required', () => {
    for (const [source, value, field] of [
      [posthog, { event: 'e', distinct_id: 'a', timestamp: at, properties: deep }, 'properties'],
      [
        amplitude,
        { event_type: 'e', device_id: 'd', user_id: null, event_time: at, user_properties: deep },
        'user_properties',
      ],
    ] as const)
      assert.deepEqual(outcomeOf(source, value), { rejected: { reason: 'properties_not_object', field } })
  })

  it('is kept as text, and no field of it can be read', () => {
    const value = { event: 'e', user: 'a', at, props: deep, list: deep.slice(deep.indexOf('['), -1) }
    const mapping = { event: 'event', distinct_id: ['props.id', 'list.0', 'user'], timestamp: 'at', uuid: 'at' }
    const config = { mapping: { ...mapping, properties: ['props'], types: { props: 'json' } } }
    const outcome = outcomeOf(generic, value, config)
    assert.ok('events' in outcome, JSON.stringify(outcome).slice(0, 200))
    const [{ distinctId, properties }] = outcome.events as [ImportedEvent]
    assert.deepEqual([distinctId, properties], ['a', { props: deep }])
  })
})

/** Counts records by outcome, and events. */
async function tally(source: ImportSource, format: 'json' | 'csv', text: string): Promise<Record<string, number>> {
  const converter = source.prepare({}, { nowMs: conversionTimeMs, holdLiveWindow: false, findFact: () => null })
  const ledger = createMemoryLedger()
  const counts: Record<string, number> = {}
  const count = (what: string, times = 1) => {
    counts[what] = (counts[what] ?? 0) + times
  }
  for await (const record of recordsOf(text, format)) {
    const outcome =
      'value' in record ? convertRecord(converter, { value: record.value, table: null, ordinal: 1 }) : record
    if ('rejected' in outcome) count(`rejected ${outcome.rejected.reason} at ${outcome.rejected.field}`)
    else if ('skipped' in outcome) count(`skipped ${outcome.skipped}`)
    else {
      count('records with events')
      count('events', createRecordEvents(source.name, outcome, ledger).events.length)
    }
  }
  return counts
}

async function* recordsOf(text: string, format: 'json' | 'csv'): AsyncGenerator<ParsedRecord> {
  const rows = createRowParser(plainCsv)
  for await (const record of splitRecords(inPieces(text), format)) {
    const parsed = format === 'json' ? parseJsonLine(record.bytes) : rows.parse(record)
    if (parsed !== null) yield parsed
  }
}

/** As a file is read, with pieces that end anywhere. */
async function* inPieces(text: string): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += 37) yield bytes.subarray(at, at + 37)
}
