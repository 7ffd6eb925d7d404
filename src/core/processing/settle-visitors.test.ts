import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { aCapturedEvent } from '../../../tests/support/values.ts'
import type { CapturedEvent } from '../events/captured-event.ts'
import { type JsonObject, parseJson } from '../json.ts'
import { type ParsedEvent, parseChunk } from './parse-chunk.ts'
import {
  assignVisitorIds,
  countIdentifyEvents,
  findVisitorEvents,
  listWantedIdentifies,
  listWantedSaltDays,
} from './settle-visitors.ts'

const hash = 'DhKalSaWowNbjg/pDrlg9A'
const day = '2026-01-15'
const salt = Buffer.from('AQIDBAUGBwgJCgsMDQ4PEA==', 'base64')

function anEvent(n: number, properties: object, over: Partial<CapturedEvent> & { isSentinel?: boolean } = {}) {
  const { isSentinel = true, ...rest } = over
  return aCapturedEvent(n, {
    distinctId: isSentinel ? `cookieless_${hash}` : 'ada',
    propertiesJson: JSON.stringify(properties),
    visitor: { stateful: { hash, day, isSentinel }, location: null },
    ...rest,
  })
}

function anIdentify(n: number) {
  return anEvent(n, { $anon_distinct_id: 'whatever was sent' }, { name: '$identify', isSentinel: false })
}

/** Settles the events of a chunk for a visitor that is not known yet. */
function settle(events: readonly CapturedEvent[], salts: ReadonlyMap<string, Uint8Array> = new Map([[day, salt]])) {
  const records = events.map((event, offset) => ({ offset, record: { kind: 'event' as const, event } }))
  const chunk = parseChunk({ stream: 'main', traffic: 'live', records }, new Map())
  const found = findVisitorEvents(chunk)
  const wanted = listWantedIdentifies(found, 'live')
  const counted = countIdentifyEvents(found, wanted, { counts: wanted.visitors.map(() => 0), known: [] })
  const settled = assignVisitorIds(chunk, found, { counted, sessions: [], salts, isRestoring: false })
  return {
    events: settled.chunk.records as readonly ParsedEvent[],
    days: [...listWantedSaltDays(found, counted.counts)],
    changes: settled.changes,
  }
}

describe('an event of a cookieless visitor', () => {
  it('gets its ids both in its JSON text and in the parsed properties, and otherwise stays as it was sent', () => {
    const sent =
      '{"n":1.0,"$distinct_id":"x","$device_id":"of the page","$host":"a.example","big":12345678901234567890}'
    const [settled] = settle([anEvent(1, {}, { propertiesJson: sent })]).events
    assert.equal(settled!.event.distinctId, `cookieless_${hash}`)
    assert.deepEqual(parseJson(settled!.event.propertiesJson), settled!.properties)
    const { $session_id, ...rest } = settled!.properties
    assert.equal(
      JSON.stringify(rest),
      `{"n":1.0,"$device_id":"cookielessd_${hash}","$host":"a.example","big":12345678901234567890}`,
    )
    assert.match(String($session_id), /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
  })

  it('belongs to a new visitor after each $identify, which is linked to the previous visitor', () => {
    const { events, changes } = settle([
      anEvent(1, {}),
      anIdentify(2),
      anEvent(3, {}, { isSentinel: false }),
      anEvent(4, {}),
      anIdentify(5),
      anEvent(6, {}),
    ])
    const second = 'cookieless_rY7x6ZnJjtPfO94RTQlcUA'
    assert.deepEqual(events.map(({ event }) => event.distinctId).slice(0, 5), [
      `cookieless_${hash}`,
      'ada',
      'ada',
      second,
      'ada',
    ])
    assert.equal(new Set([`cookieless_${hash}`, second, events[5]!.event.distinctId]).size, 3)
    const anonIds = events.map(({ properties }) => (properties as JsonObject).$anon_distinct_id)
    assert.deepEqual(anonIds, [undefined, `cookieless_${hash}`, undefined, undefined, second, undefined])
    assert.deepEqual(
      changes.identifies.map(({ ordinal, offset }) => [ordinal, offset]),
      [
        [0, 1],
        [1, 4],
      ],
    )
  })

  it('keeps its visitor’s number of $identify events when an $identify is sent again', () => {
    const first = anIdentify(1)
    const { events, changes } = settle([first, anIdentify(2), first])
    assert.equal(events[2]!.event.propertiesJson, events[0]!.event.propertiesJson)
    assert.equal(changes.identifies.length, 2)
  })

  it('needs no salt until the visitor is identified', () => {
    const before = [anEvent(1, {}, { isSentinel: false }), anEvent(2, {}), anIdentify(3)]
    assert.deepEqual(settle(before).days, [])
    assert.deepEqual(settle([...before, anEvent(4, {})]).days, [day])
  })

  it('gets a different id than the previous visitor’s, even if the salt of its day has been deleted', () => {
    const ids = settle([anEvent(1, {}), anIdentify(2), anEvent(3, {}), anEvent(4, {})], new Map()).events.map(
      ({ event }) => event.distinctId,
    )
    assert.equal(ids[0], `cookieless_${hash}`)
    assert.notEqual(ids[2], ids[0])
    assert.notEqual(ids[2], 'cookieless_rY7x6ZnJjtPfO94RTQlcUA')
    assert.equal(ids[3], ids[2])
  })

  it('does not end a session if it is late', () => {
    const atMinute = (n: number, minute: number) => anEvent(n, {}, { timestampMs: 1_768_435_200_000 + minute * 60_000 })
    const events = settle([atMinute(1, 60), atMinute(2, 0), atMinute(3, 90), atMinute(4, 121)]).events
    const [a, b, c, d] = events.map(({ properties }) => (properties as JsonObject).$session_id)
    assert.deepEqual([a === b, b === c, c === d], [true, true, false])
  })

  it('is not changed if the edge has already determined its visitor', () => {
    const event = aCapturedEvent(1, { visitor: { stateful: null, location: null } })
    const records = [{ offset: 0, record: { kind: 'event' as const, event } }]
    assert.deepEqual(findVisitorEvents(parseChunk({ stream: 'main', traffic: 'live', records }, new Map())), [])
  })
})
