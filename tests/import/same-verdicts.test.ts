// Odd records through the rehearsal and through the real service. Whatever the service refuses or drops, the rehearsal
// refuses for the same reason; whatever the rehearsal accepts is stored unchanged.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type JsonObject, type JsonValue, parseJson } from '#core/json.ts'
import { convertRecord, envelopeBytesMax, eventBytesMax } from '#importer/records/convert-record.ts'
import { createRecordEvents } from '#importer/records/generated-events.ts'
import { createInMemoryLedger } from '#importer/records/import-ledger.ts'
import type { Conversion, ConvertedRecord, ImportedEvent } from '#importer/records/imported-event.ts'
import { encodeImportedEvent } from '#importer/send/encode-event.ts'
import { findSource } from '#importer/sources/sources.ts'
import { nestingDepthMax } from '#wire/bytes/json-walk.ts'
import { type CaptureEdge, startCaptureEdge } from '../support/capture-edge.ts'
import { testToken } from '../support/capture-server.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { aWorld } from '../support/world/world.ts'

const nowMs = Date.parse('2026-11-01T00:00:00Z')
const marks = { source: 'generic', jobId: '9007199254740991' }
const timeUs = Date.parse('2024-05-01T12:00:00Z') * 1_000

function an(event: string, properties: JsonObject = {}, over: Partial<ImportedEvent> = {}): ConvertedRecord {
  const uuid = '0197c5a0-0000-7000-8000-000000000001'
  return { events: [{ uuid, event, distinctId: 'ada', timeUs, properties, ...over }] }
}

/** An object in which `depth` lists and objects are open at once, including itself. */
function nested(depth: number, innermost: JsonValue = 1): JsonObject {
  let value = innermost
  for (let open = 1; open < depth; open++) value = open % 2 === 0 ? { a: value } : [value, 'b']
  return { c: value }
}

const person = (properties: JsonObject): ConvertedRecord => ({
  ...an('Tap'),
  person: { distinctId: 'ada', properties },
})
const group = (properties: JsonObject): ConvertedRecord => ({
  ...an('Tap'),
  groups: [{ type: 'org', key: 'acme', properties, distinctId: 'ada', timeUs }],
})
const link = (properties: JsonObject): ConvertedRecord => ({
  events: [],
  links: [{ userId: 'ada', deviceId: 'd-1', timeUs, properties }],
})
/** A record that takes the given number of bytes when sent with the longest possible job id. */
function sized(bytes: number, make: (properties: JsonObject) => ConvertedRecord): ConvertedRecord {
  const [event] = createRecordEvents('generic', make({ text: '' }), createInMemoryLedger()).events
  const { length } = JSON.stringify([event!.event, event!.distinctId, event!.properties])
  return make({ text: 'x'.repeat(bytes - length - envelopeBytesMax) })
}

const eventOf = (properties: JsonObject) => an('Tap', properties)
const deepest = nestingDepthMax
/** Each record with its description and the reason both give for refusing it; null if it is stored. */
const cases: readonly (readonly [what: string, record: ConvertedRecord, refused: string | null])[] = [
  ...(
    [
      ['properties', eventOf, deepest],
      ['its own $set', ($set: JsonObject) => eventOf({ $set }), deepest - 1],
      ['its own $set_once', ($set_once: JsonObject) => eventOf({ $set_once }), deepest - 1],
      ['person properties', person, deepest - 1],
      ['group properties', group, deepest - 1],
      ['$set of a link', ($set: JsonObject) => link({ $set }), deepest - 1],
    ] as const
  ).flatMap(([what, make, depth]) => [
    [`${what}, nested ${depth} deep`, make(nested(depth)), null] as const,
    [`${what}, nested ${depth} deep around a literal`, make(nested(depth, parseJson('1.50'))), null] as const,
    [`${what}, nested ${depth + 1} deep`, make(nested(depth + 1)), 'invalid_json'] as const,
    [`${what}, nested ${depth + 1} deep around an empty list`, make(nested(depth, [])), 'invalid_json'] as const,
  ]),
  ['an event of the maximum size', sized(eventBytesMax, eventOf), null],
  ['an event with many values', eventOf({ list: Array(400_000).fill(0) }), null],
  ['$cookieless_mode set to false', eventOf({ $cookieless_mode: false }), null],
  ...[5, 'on', null, [], {}].map(
    mode =>
      [
        `$cookieless_mode set to ${JSON.stringify(mode)}`,
        eventOf({ $cookieless_mode: mode }),
        'invalid_cookieless_mode',
      ] as const,
  ),
  ['a cookieless event with its own distinct id', eventOf({ $cookieless_mode: true }), null],
  [
    'an event with the shared distinct id of cookieless events',
    an('Tap', { $cookieless_mode: true }, { distinctId: '$posthog_cookieless' }),
    'cookieless_timestamp_out_of_range',
  ],
  ['a heatmap', an('$$heatmap'), 'heatmap'],
  ['a client ingestion warning', an('$$client_ingestion_warning'), 'client_ingestion_warning'],
  ['a performance event', an('$performance_event', { $cookieless_mode: 5 }), 'dropped_performance_event'],
  ['a link to a number', an('$identify', { $anon_distinct_id: 5 }), 'invalid_anon_distinct_id'],
  ['an alias that is a list', an('$create_alias', { alias: ['b'] }), 'invalid_alias'],
  [
    'a personless merge',
    an('$merge_dangerously', { alias: 'b', $process_person_profile: false }),
    'invalid_event_when_process_person_profile_is_false',
  ],
  [
    'a group key that is too long',
    an('$groupidentify', { $group_type: 'org', $group_key: 'x'.repeat(401) }),
    'group_key_too_long',
  ],
  [
    'a group key of the maximum length',
    an('$groupidentify', { $group_type: 'org', $group_key: 'x'.repeat(400) }),
    null,
  ],
  [
    'a group whose properties are no object',
    an('$groupidentify', { $group_type: 'o', $group_key: 5, $group_set: 'x' }),
    null,
  ],
  ['a name of 200 characters', an('😀'.repeat(200)), null],
  ['an id of 200 characters', an('Tap', {}, { distinctId: '😀'.repeat(200) }), null],
  [
    'an event with ids and tokens of others in its properties',
    eventOf({ distinct_id: ['b'], $distinct_id: 5, token: 'phc_b', api_key: 5 }),
    null,
  ],
  [
    'an event with envelope fields in its properties',
    eventOf({ timestamp: 'x', uuid: 'x', offset: 1.5, historical_migration: 'no' }),
    null,
  ],
  [
    'an event with $set, $set_once and $unset of wrong types',
    eventOf({ $set: 'x', $set_once: [1], $unset: { a: 1 } }),
    null,
  ],
  ['half an emoji', eventOf({ '\ud83d': ['\ude00'], '\0': '\0' }), null],
  ['an event at the earliest time', an('Tap', {}, { timeUs: Date.UTC(1971, 0, 1) * 1_000 }), null],
  ['an event with microseconds', an('Tap', {}, { timeUs: timeUs + 123_456 }), null],
  ['an event an hour in the future', an('Tap', {}, { timeUs: (nowMs + 3_600_000) * 1_000 }), null],
  ['an exception', an('$exception', { $exception_list: 5 }), null],
  ['an AI event', an('$ai_generation', { $ai_input: nested(9) }), null],
]

describe('the rehearsal and the service', () => {
  const edge = startedForTests(() => startCaptureEdge({ now: nowMs, eventStore: { countStoredEvents: async () => 0 } }))

  for (const [what, record, refused] of cases)
    it(`both ${refused === null ? 'take' : 'refuse'} ${what}`, async () => {
      const rehearsed = convertRecord({ convert: () => record }, { value: {}, table: null, ordinal: 1 })
      const { verdicts, stored } = await sent(edge, record)
      if (refused === null) {
        assert.deepEqual(rehearsed, record)
        assert.deepEqual(stored, expected(record))
      } else {
        assert.equal(reasonOf(rehearsed), `server_refused:${refused}`)
        assert.ok(verdicts.includes(refused), verdicts.join())
      }
    })

  it('differ in the size limit only by the space that the service needs for the envelope', () => {
    const verdictOf = (record: ConvertedRecord) =>
      reasonOf(convertRecord({ convert: () => record }, { value: {}, table: null, ordinal: 1 }))
    for (const make of [eventOf, person, group, ($set: JsonObject) => eventOf({ $set })]) {
      assert.equal(verdictOf(sized(eventBytesMax, make)), null)
      assert.equal(verdictOf(sized(eventBytesMax + 1, make)), 'record_too_large')
    }
    const [event] = sized(eventBytesMax, eventOf).events
    assert.ok(encodeImportedEvent(event!, marks).bytes <= eventBytesMax)
  })

  it('agree on any record that an export may contain', async () => {
    const converter = findSource('posthog')!.prepare({}, { nowMs, holdLiveWindow: false, findFact: () => null })
    const property = fc.asyncProperty(oddRecord, async fields => {
      // In the form read from a file.
      const value = parseJson(JSON.stringify(fields)) as JsonObject
      const outcome = convertRecord(converter, { value, table: null, ordinal: 1 })
      const reason = reasonOf(outcome)
      if ('events' in outcome) {
        assert.deepEqual((await sent(edge, outcome)).stored, expected(outcome))
      } else if (reason?.startsWith('server_refused:')) {
        const { verdicts } = await sent(edge, converter.convert({ value, table: null, ordinal: 1 }) as ConvertedRecord)
        assert.deepEqual([...new Set(verdicts)], [reason.slice('server_refused:'.length)])
      }
    })
    await fc.assert(property, { numRuns: 150 })
  })
})

function reasonOf(outcome: Conversion): string | null {
  return 'rejected' in outcome ? outcome.rejected.reason : null
}

/** The service's verdicts on the events of an unchecked record, and what its worker stores of them. */
async function sent(edge: CaptureEdge, record: ConvertedRecord) {
  const verdicts: string[] = []
  const stored: unknown[] = []
  for (const event of createRecordEvents('generic', record, createInMemoryLedger()).events) {
    const { text } = encodeImportedEvent(event, marks)
    const body = `{"api_key":"${testToken}","historical_migration":true,"batch":[${text}]}`
    const answer = await edge.send({ path: '/batch/', headers: { 'x-import-report': '1' }, body })
    if (answer.status === 200) {
      const report = JSON.parse(answer.body) as { readonly failed_records: readonly { readonly reason: string }[] }
      verdicts.push(...report.failed_records.map(({ reason }) => reason))
    } else verdicts.push(answer.code)
    const world = aWorld()
    if (answer.events.length > 0) await world.apply(...answer.events)
    stored.push(...world.rows.map(row => [row.uuid, row.event, row.distinctId, row.timestampMs]))
  }
  return { verdicts, stored }
}

/** The events in the form in which the service stores them. */
function expected(record: ConvertedRecord): unknown[] {
  return createRecordEvents('generic', record, createInMemoryLedger()).events.map(
    ({ uuid, event, distinctId, timeUs: us }) => [
      uuid,
      event.toWellFormed().replace('$group_identify', '$groupidentify'),
      distinctId.toWellFormed().replaceAll('\0', '\ufffd'),
      Math.floor(us / 1_000),
    ],
  )
}

const oddText = fc.constantFrom(
  ...['', ' ', 'a', 'a\0b', '\ud83d', ' x ', '\u00a0', '\ufeff', 'null', 'NaN', '0', "'anonymous'", '[]', '{}'],
  ...['x'.repeat(200), 'x'.repeat(201), '😀'.repeat(200), '😀'.repeat(201), 'x'.repeat(401)],
)
const oddScalar = fc.oneof(oddText, fc.constantFrom(0, -0, 1.5, 1e21, 2 ** 63, null, true, false))
const oddValue = fc.oneof(
  { weight: 3, arbitrary: oddScalar },
  fc.array(oddScalar, { maxLength: 2 }),
  fc.dictionary(fc.constantFrom('a', '$set', '__proto__', 'constructor', '', '\0', '\ud83d'), oddScalar, {
    maxKeys: 2,
  }),
)
const often = <T>(usual: T, odd: fc.Arbitrary<unknown>) => fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, odd)
const readNames = [
  ...['$set', '$set_once', '$unset', '$groups', '$group_type', '$group_key', '$group_set', '$group_unset', '$group_0'],
  ...['$cookieless_mode', '$process_person_profile', 'alias', '$anon_distinct_id', 'distinct_id', '$distinct_id'],
  ...['token', '$session_id', '$window_id', '$ip', '$elements', '$elements_chain', '$ignore_sent_at', '$lib'],
  ...['timestamp', 'uuid', 'offset', 'api_key', '$os', '$os_name', '$feature/x', '$feature_flag', '$import_job_id', ''],
  ...['__proto__', 'constructor', '\0', '\ud83d', '$insert_id', 'utm_source', '$current_url', '$exception_list'],
]
const oddRecord = fc.record({
  uuid: often('0197c5a0-0000-7000-8000-000000000009', oddValue),
  event: fc.oneof(
    fc.constantFrom('Tap', '$identify', '$create_alias', '$merge_dangerously', '$groupidentify', '$group_identify'),
    fc.constantFrom('$set', '$exception', '$ai_generation', '$$x', '$feature_flag_called', '$performance_event'),
    oddText,
  ),
  distinct_id: often('ada', oddValue),
  timestamp: often(
    '2024-05-01T12:00:00Z',
    fc.constantFrom('1971-01-01T00:00:00Z', '2026-11-01T00:59:00Z', 1.5e9 + 0.5, 5),
  ),
  properties: fc.dictionary(fc.constantFrom(...readNames), oddValue, { maxKeys: 4 }),
})
