import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isUuid } from '#core/events/uuid.ts'
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from '#core/json.ts'
import { minOf } from '#core/min-max.ts'
import { deriveImportUuid } from '#importer/records/deterministic-uuid.ts'
import { convertRecords, eventsOf } from '../../../tests/support/convert-records.ts'
import { convertRecord } from '../records/convert-record.ts'
import { isIllegalId } from '../records/distinct-ids.ts'
import { createRecordEvents } from '../records/generated-events.ts'
import { createInMemoryLedger } from '../records/import-ledger.ts'
import { ImportConfigError, type RecordConverter } from '../records/import-source.ts'
import { type ImportedEvent, RecordReject } from '../records/imported-event.ts'
import { findSource, listSources, sourceNames } from './sources.ts'

interface Vector {
  readonly id: string
  readonly source: string
  readonly input: JsonValue
  readonly config?: JsonObject
}
const vectorsPath = new URL('../../../tests/conformance/import-vectors.json', import.meta.url)
const { vectors } = parseJson(readFileSync(vectorsPath, 'utf8')) as unknown as { vectors: readonly Vector[] }
const nowMs = Date.UTC(2026, 0, 15)
const context = { nowMs, holdLiveWindow: false, findFact: () => null }

/** Values that exports have in unexpected places. */
const oddValue = fc.constantFrom<JsonValue>(
  ...[null, '', ' ', 'EMPTY', 'null', '0', 'x'.repeat(300), '2024-05-01', '2024-05-01T12:00:00Z', '{"a":1}', '{'],
  ...[0, -1, 1.5, 1e300, 1_714_564_800, 1_714_564_800_000, true, false],
  ...[[], [null], ['a', 5], [{ key: 'a', value: { int_value: '5' } }], {}, { a: null }, { a: { b: 'c' } }],
  parseJson('9007199254740993'),
  parseJson('{"__proto__":5,"constructor":"x"}'),
)

/** The record with odd values in some places and without some fields. */
function spoilt(record: JsonObject): fc.Arbitrary<JsonObject> {
  const places = placesIn(record)
  const change = fc.record({ place: fc.constantFrom(...places), value: fc.option(oddValue, { nil: undefined }) })
  return fc.array(change, { maxLength: 4 }).map(changes => {
    const copy = parseJson(JSON.stringify(record)) as JsonObject
    for (const { place, value } of changes) setAt(copy, place, value)
    return copy
  })
}

function placesIn(value: JsonValue, place: readonly string[] = []): string[][] {
  const members = Array.isArray(value) || isJsonObject(value) ? Object.entries(value) : []
  return members.flatMap(([key, member]) => [[...place, key], ...placesIn(member as JsonValue, [...place, key])])
}

function setAt(record: JsonObject, place: readonly string[], value: JsonValue | undefined): void {
  let owner = record as JsonValue
  for (const key of place.slice(0, -1)) {
    const next = (owner as JsonObject)[key]
    if (!Array.isArray(next) && !isJsonObject(next)) return
    owner = next
  }
  const [key, members] = [place.at(-1)!, owner as JsonObject]
  // An earlier change may have put a list where an object was.
  if (Array.isArray(owner) && !Object.hasOwn(owner, key)) return
  if (value === undefined && !Array.isArray(owner)) delete members[key]
  // A copy, since a later change may be within it.
  else members[key] = parseJson(JSON.stringify(value ?? null))
}

function timeOrNull(converter: RecordConverter, value: JsonObject): number | null {
  try {
    return converter.timeOf({ value, table: null, ordinal: 1 })
  } catch (error) {
    if (error instanceof RecordReject) return null
    throw error
  }
}

describe('every source', () => {
  for (const name of sourceNames) {
    const ownVectors = vectors.filter(({ source, input }) => source === name && typeof input !== 'string')
    if (ownVectors.length === 0) continue

    it(`converts any record of ${name} to valid events, a reject or a skip, deterministically, and knows its time`, () => {
      for (const { input, config = {} } of ownVectors) {
        const converter = findSource(name)!.prepare(config, context)
        const withoutFacts = findSource(name)!.prepare(config, {
          ...context,
          findFact: () => assert.fail('asks for a fact'),
        })
        const outcomeOf = (value: JsonObject) => convertRecord(converter, { value, table: null, ordinal: 1 })
        fc.assert(
          fc.property(spoilt(input as JsonObject), value => {
            const text = JSON.stringify(value)
            const outcome = outcomeOf(value)
            assert.equal(JSON.stringify(value), text, 'the record is not changed')
            assert.deepEqual(outcomeOf(parseJson(text) as JsonObject), outcome)
            const timeUs = timeOrNull(withoutFacts, value)
            assert.equal(JSON.stringify(value), text, 'the record is not changed')
            if (!('events' in outcome)) return
            const { events, links = [], groups = [] } = outcome
            assert.equal(timeUs, minOf([...events, ...links, ...groups].map(each => each.timeUs)))
            for (const event of createRecordEvents(name, outcome, createInMemoryLedger()).events) {
              assert.ok(isUuid(event.uuid) && event.uuid === event.uuid.toLowerCase(), event.uuid)
              assert.ok(event.event.length > 0 && event.event.length <= 200)
              assert.ok(!isIllegalId(event.distinctId) && event.distinctId.length <= 200, event.distinctId)
              assert.ok(Number.isSafeInteger(event.timeUs) && event.timeUs <= (nowMs + 3_600_000) * 1000)
              assert.deepEqual(parseJson(JSON.stringify(event.properties)), event.properties)
            }
          }),
          { numRuns: 100 },
        )
      }
    })
  }

  it('reports the name that the source itself gives to an event', () => {
    const names: Readonly<Record<string, string>> = {
      'mp-01': '$mp_web_page_view',
      'am-01': '[Amplitude] Page Viewed',
      'sg-02': 'page',
      'hp-01': 'pageviews',
      'ga-01': 'page_view',
      'mt-01': 'action',
      'ph-05': '$group_identify',
    }
    for (const { id, source, input, config = {} } of vectors.filter(vector => Object.hasOwn(names, vector.id))) {
      const value = parseJson(typeof input === 'string' ? input : JSON.stringify(input)) as JsonObject
      const record = { value, table: null, ordinal: 1 }
      const outcome = convertRecord(findSource(source)!.prepare(config, context), record)
      assert.equal('events' in outcome && outcome.events[0]!.sourceName, names[id], id)
    }
  })

  it('refuses an unknown key', () => {
    for (const source of listSources()) {
      const { config = {} } = vectors.find(vector => vector.source === source.name) ?? {}
      const prepare = () => source.prepare({ ...config, no_such_key: 1 }, context)
      assert.throws(
        prepare,
        error => error instanceof ImportConfigError && /no_such_key/.test(error.message),
        source.name,
      )
    }
  })

  it('is found by its name, and RudderStack is found as Segment, whose format it shares', () => {
    const found = sourceNames.map(name => [name, findSource(name)?.name])
    assert.deepEqual(
      found.filter(([name, own]) => name !== own),
      [['rudderstack', 'segment']],
    )
    assert.equal(findSource('mixpannel'), null)
  })
})

/** A record of a source, with the places of what all sources have. */
interface Sample {
  readonly record: JsonObject
  readonly config?: JsonObject
  readonly table?: string
  readonly name?: string
  /** All of them name the user. */
  readonly user: readonly string[]
  readonly device?: string
  readonly id?: string
  readonly time: string
  /** Whether the time is not shifted by other fields. */
  readonly isAbsolute?: boolean
}

const at = '2024-05-01T12:00:00Z'
const mapping = { event: 'action', distinct_id: 'uid', anon_id: 'device', timestamp: 'ts', uuid: 'row_id' }
const visit = { idVisit: 9, userId: 'ada', visitorId: 'd-1', firstActionTimestamp: 1714564800 }
const samples: Readonly<Record<string, Sample>> = {
  amplitude: {
    record: { event_type: 'Opened', user_id: 'ada', device_id: 'd-1', event_time: at, $insert_id: 'i' },
    ...{ name: 'event_type', user: ['user_id'], device: 'device_id', id: '$insert_id', time: 'event_time' },
  },
  ga4: {
    record: { event_name: 'login', user_id: 'ada', user_pseudo_id: 'd-1', event_timestamp: at },
    ...{ name: 'event_name', user: ['user_id'], device: 'user_pseudo_id', time: 'event_timestamp' },
  },
  generic: {
    record: { action: 'Paid', uid: 'ada', device: 'd-1', ts: at, row_id: 'i' },
    ...{ config: { mapping }, name: 'action', user: ['uid'], device: 'device', id: 'row_id', time: 'ts' },
  },
  heap: {
    record: { event_id: 'i', user_id: 'ada', time: at },
    ...{ table: 'pageviews', user: ['user_id'], id: 'event_id', time: 'time' },
  },
  matomo: {
    record: { ...visit, actionDetails: [{ type: 'event', eventAction: 'play', timestamp: 1714564800 }] },
    ...{ name: 'actionDetails.0.eventAction', user: ['userId'], device: 'visitorId' },
    ...{ time: 'actionDetails.0.timestamp', isAbsolute: false },
  },
  mixpanel: {
    record: {
      event: 'Opened',
      properties: { distinct_id: 'ada', $user_id: 'ada', $device_id: 'd-1', time: at, $insert_id: 'i' },
    },
    ...{ name: 'event', user: ['properties.distinct_id', 'properties.$user_id'], device: 'properties.$device_id' },
    ...{ id: 'properties.$insert_id', time: 'properties.time' },
  },
  posthog: {
    record: { event: 'Opened', distinct_id: 'ada', timestamp: at, uuid: '018f3a10-0000-7000-8000-000000000701' },
    ...{ name: 'event', user: ['distinct_id'], id: 'uuid', time: 'timestamp' },
  },
  segment: {
    record: { type: 'track', event: 'Tap', userId: 'ada', anonymousId: 'd-1', timestamp: at, messageId: 'i' },
    ...{ name: 'event', user: ['userId'], device: 'anonymousId', id: 'messageId', time: 'timestamp' },
  },
}

for (const [name, { record, config = {}, table = '', isAbsolute = true, ...places }] of Object.entries(samples))
  describe(`a record of ${name}`, () => {
    const { user, device, id, time } = places
    const source = findSource(name)!
    const changed = (values: JsonObject) => {
      const value = parseJson(JSON.stringify(record)) as JsonObject
      for (const [place, each] of Object.entries(values)) setAt(value, place.split('.'), each)
      return { table, value }
    }
    const of = (userId: JsonValue) => Object.fromEntries(user.map(place => [place, userId]))
    const eventsIn = (values: JsonObject) => eventsOf(source, [changed(values)], config)

    it('is refused with the name of the faulty field', () => {
      const withoutDevice = device === undefined ? {} : { [device]: null }
      const idField = name === 'generic' ? 'uid' : 'distinct_id'
      const refusals: [values: JsonObject, reason: string, field: string][] = [
        [{ ...of(null), ...withoutDevice }, 'distinct_id_missing', idField],
        [{ ...of(''), ...withoutDevice }, 'distinct_id_missing', idField],
        [of('x'.repeat(201)), 'distinct_id_too_long', 'distinct_id'],
        [{ [time]: null }, 'timestamp_missing', time],
        [{ [time]: 'noon' }, 'timestamp_invalid', time],
      ]
      if (isAbsolute) {
        refusals.push([{ [time]: '1970-12-31T23:59:59Z' }, 'timestamp_out_of_range', time])
        refusals.push([{ [time]: '2031-01-01T00:00:00Z' }, 'timestamp_future', time])
      }
      const names = { event_missing: [null, ' '], event_not_string: [5], event_name_too_long: ['x'.repeat(201)] }
      for (const [reason, values] of places.name === undefined ? [] : Object.entries(names))
        for (const value of values) refusals.push([{ [places.name!]: value }, reason, places.name!])
      for (const [values, reason, place] of refusals) {
        const field = place.replace('.0.', '[0].')
        assert.deepEqual(convertRecords(source, [changed(values)], config), [{ rejected: { reason, field } }])
      }
    })

    if (id !== undefined)
      it('has a uuid derived from its content unless it has an id', () => {
        const uuidOf = (values: JsonObject) => eventsIn(values).at(-1)!.uuid
        assert.equal(uuidOf({ n: 1 }), uuidOf({ n: 2 }))
        for (const none of [null, ' ', '(not set)']) {
          assert.equal(uuidOf({ [id]: none, n: 1 }), uuidOf({ n: 1, [id]: none }))
          assert.notEqual(uuidOf({ [id]: none, n: 1 }), uuidOf({ [id]: none, n: 2 }))
        }
      })

    if (device !== undefined) {
      it('belongs to its user, or otherwise to its device', () => {
        const idOf = (userId: JsonValue) => eventsIn(of(userId)).at(-1)!.distinct_id
        assert.deepEqual(['ada', '', null, 'guest', '(not set)', 'null'].map(idOf), ['ada', ...Array(5).fill('d-1')])
        assert.equal(eventsIn(of('guest')).length, 1, 'it has nothing to link')
      })

      it('links its device only to its first user, with a note about a second user', () => {
        const records = [{}, {}, of('bob'), { [device]: 'ada' }].map(changed)
        const outcomes = convertRecords(source, records, config).map(outcome => {
          assert.ok('events' in outcome)
          return `${outcome.events.length} ${outcome.notes.includes('shared_device')}`
        })
        assert.deepEqual(outcomes, ['2 false', '1 false', '1 true', '1 false'])
        const [link, own] = eventsIn({})
        assert.deepEqual(
          [link!.uuid, link!.event, link!.distinct_id, link!.timestamp, link!.properties.$anon_distinct_id],
          [deriveImportUuid('identify', name, 'ada', 'd-1'), '$identify', 'ada', own!.timestamp, 'd-1'],
        )
      })
    }
  })

describe('JSON text nested too deeply to be parsed', () => {
  const deep = `{"id":7,"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  const at = '2024-05-01T12:00:00Z'
  const outcomeOf = (source: string, value: JsonObject, config: JsonObject = {}) =>
    convertRecord(findSource(source)!.prepare(config, context), { value, table: null, ordinal: 1 })

  it('is not accepted where an object is required', () => {
    for (const [source, value, field] of [
      ['posthog', { event: 'e', distinct_id: 'a', timestamp: at, properties: deep }, 'properties'],
      [
        'amplitude',
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
    const outcome = outcomeOf('generic', value, config)
    assert.ok('events' in outcome, JSON.stringify(outcome).slice(0, 200))
    const [{ distinctId, properties }] = outcome.events as [ImportedEvent]
    assert.deepEqual([distinctId, properties], ['a', { props: deep }])
  })
})
