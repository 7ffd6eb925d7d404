import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { edgeNote } from '../events/captured-event.ts'
import type { IncomingEvent } from './incoming-event.ts'
import { type EventContext, eventBytesMax, laneOf, normalizeDistinctId, normalizeEvent } from './normalize-event.ts'
import { cutRejectBody, rejectBodyBytesMax } from './reject-body.ts'

const context: EventContext = {
  projectId: 7,
  token: 'phc_x',
  historicalMigration: false,
  importJobId: 0,
  receivedAtMs: Date.parse('2025-07-01T11:00:00Z'),
  sentAtMs: null,
  capturedAtMs: Date.parse('2025-07-01T11:00:00Z'),
  rerouteOlderThanMs: null,
  ip: '203.0.113.7',
  random: () => 0,
}

function anItem(over: Partial<IncomingEvent> = {}): IncomingEvent {
  return {
    kind: 'event',
    name: 'signed up',
    distinctId: 'ada',
    uuid: null,
    timestamp: '2025-07-01T10:00:00Z',
    offsetMs: null,
    ignoreSentAt: false,
    isCookieless: false,
    cookielessModeInvalid: false,
    captureInternal: false,
    propertiesJson: '{"a":1.0}',
    setJson: null,
    setOnceJson: null,
    ...over,
  }
}

function normalized(over: Partial<IncomingEvent>, contextOver: Partial<EventContext> = {}) {
  return normalizeEvent(anItem(over), { ...context, ...contextOver })
}

describe('normalizeEvent', () => {
  it('completes an event', () => {
    assert.deepEqual(normalized({}), {
      ok: true,
      value: {
        projectId: 7,
        token: 'phc_x',
        lane: 'main',
        historicalMigration: false,
        importJobId: 0,
        protocol: 'v0',
        personProcessingForcedOff: false,
        notes: 0,
        receivedAtMs: context.receivedAtMs,
        capturedAtMs: context.receivedAtMs,
        timestampMs: Date.parse('2025-07-01T10:00:00Z'),
        sentAtMs: null,
        uuid: '0197c56d-d900-7000-8000-000000000000',
        name: 'signed up',
        distinctId: 'ada',
        ip: '203.0.113.7',
        visitor: null,
        propertiesJson: '{"a":1.0}',
        setJson: null,
        setOnceJson: null,
      },
    })
  })
  it('reports the first fault in the order of the wire', () => {
    const bad = { name: '', distinctId: null, cookielessModeInvalid: true, timestamp: 'soon' }
    const historical = { historicalMigration: true }
    const reasonOf = (over: Partial<IncomingEvent>) => {
      const outcome = normalized(over, historical)
      return outcome.ok ? 'ok' : outcome.error
    }
    assert.equal(reasonOf(bad), 'missing_event_name')
    assert.equal(reasonOf({ ...bad, name: 'e' }), 'timestamp_invalid')
    assert.equal(reasonOf({ ...bad, name: 'e', timestamp: null }), 'missing_distinct_id')
    assert.equal(reasonOf({ ...bad, name: 'e', timestamp: null, distinctId: 'u' }), 'invalid_cookieless_mode')
  })
  it('refuses an event that is too large for the log, measured in bytes', () => {
    const text = (length: number, character: string) => `{"a":"${character.repeat(length)}"}`
    assert.equal(normalized({ propertiesJson: text(eventBytesMax - 8, 'x') }).ok, true)
    assert.equal(normalized({ propertiesJson: text(eventBytesMax - 7, 'x') }).ok, false)
    assert.equal(normalized({ propertiesJson: text(eventBytesMax / 2, '€') }).ok, false)
    assert.equal(normalized({ name: '$ai_generation', propertiesJson: text(eventBytesMax * 2, 'x') }).ok, true)
  })
  it('hides the address of the service’s own tools', () => {
    const event = normalized({ captureInternal: true })
    assert.equal(event.ok && event.value.ip, '127.0.0.1')
  })
  it('stores one name for both spellings of a group event in an import, and keeps both in live events', () => {
    const name = '$group_identify'
    const imported = normalized({ name }, { historicalMigration: true })
    const live = normalized({ name })
    assert.equal(imported.ok && imported.value.name, '$groupidentify')
    assert.equal(live.ok && live.value.name, '$group_identify')
  })
})

describe('laneOf', () => {
  it('depends on the name first, then on the flag', () => {
    const lanes = [
      '$exception',
      '$$heatmap',
      '$$client_ingestion_warning',
      '$ai_span',
      '$pageview',
      'x',
      '$ai_own',
    ].map(name => [laneOf(name, false), laneOf(name, true)])
    assert.deepEqual(lanes, [
      ['error_tracking', 'error_tracking'],
      ['heatmaps', 'heatmaps'],
      ['warnings', 'warnings'],
      ['ai', 'ai'],
      ['main', 'historical'],
      ['main', 'historical'],
      ['main', 'historical'],
    ])
  })
})

describe('age rerouting', () => {
  const dayMs = 86_400_000
  const rerouted = (over: Partial<IncomingEvent>, contextOver: Partial<EventContext> = {}) => {
    const outcome = normalized(over, { rerouteOlderThanMs: dayMs, ...contextOver })
    assert.ok(outcome.ok)
    const { lane, historicalMigration, importJobId, name } = outcome.value
    return { lane, historicalMigration, importJobId, name }
  }
  const live = { lane: 'main', historicalMigration: false, importJobId: 0, name: 'signed up' }
  const imported = { lane: 'historical', historicalMigration: true, importJobId: 1, name: 'signed up' }

  it('turns a live event into an import from the threshold on, and no younger one', () => {
    assert.deepEqual(rerouted({ timestamp: '2025-06-30T11:00:00.001Z' }), live)
    assert.deepEqual(rerouted({ timestamp: '2025-06-30T11:00:00.000Z' }), imported)
    assert.deepEqual(rerouted({ timestamp: null, offsetMs: dayMs }), imported)
    assert.deepEqual(rerouted({ timestamp: null }), live)
    assert.deepEqual(rerouted({ timestamp: '1999-01-01T00:00:00Z' }, { rerouteOlderThanMs: null }), live)
  })
  it('uses the corrected time', () => {
    const sentAtMs = Date.parse('2025-06-20T11:00:00Z')
    assert.deepEqual(rerouted({ timestamp: '2025-06-20T10:59:00Z' }, { sentAtMs }), live)
  })
  it('moves only events of the main lane', () => {
    const old = { timestamp: '2020-01-01T00:00:00Z' }
    for (const [name, lane] of [
      ['$exception', 'error_tracking'],
      ['$$heatmap', 'heatmaps'],
      ['$ai_span', 'ai'],
    ] as const)
      assert.deepEqual(rerouted({ ...old, name }), { ...live, lane, name })
    assert.deepEqual(rerouted({ ...old, name: '$group_identify' }), { ...imported, name: '$groupidentify' })
  })
  it('leaves imports unchanged', () => {
    const imports = { historicalMigration: true, importJobId: 9 }
    assert.deepEqual(rerouted({ timestamp: '2020-01-01T00:00:00Z' }, imports), { ...imported, importJobId: 9 })
  })
})

describe('notes of an accepted event', () => {
  const notesOf = (over: Partial<IncomingEvent>, contextOver: Partial<EventContext> = {}) => {
    const outcome = normalized(over, contextOver)
    assert.ok(outcome.ok)
    return outcome.value.notes
  }
  it('distinguish a live time that cannot be read or stored from one that can', () => {
    const sentAtMs = Date.parse('2225-07-01T11:00:00Z')
    assert.equal(notesOf({ timestamp: 'yesterday' }), edgeNote.timeUnreadable)
    assert.equal(notesOf({ timestamp: '1850-01-01T00:00:00Z' }), edgeNote.timeUnreadable)
    assert.equal(notesOf({ timestamp: '1901-01-01T00:00:00Z' }, { sentAtMs }), edgeNote.timeUnreadable)
    for (const timestamp of [null, '2025-07-01T11:00:00Z', '2025-07-03T11:00:00Z', '2025-06-01'])
      assert.equal(notesOf({ timestamp }), 0, String(timestamp))
    assert.equal(notesOf({ timestamp: 'yesterday', offsetMs: 0 }), 0)
  })
  it('report what was cut', () => {
    assert.equal(notesOf({ distinctId: 'x'.repeat(201) }), edgeNote.distinctIdCut)
    assert.equal(notesOf({ distinctId: '\u{1f600}'.repeat(200) }), 0)
    assert.equal(notesOf({ name: 'x'.repeat(201) }), edgeNote.nameCut)
    assert.equal(notesOf({ name: '$group_identify' }, { historicalMigration: true }), 0)
    assert.equal(
      notesOf({ name: '\u{1f600}'.repeat(201), distinctId: '\u{1f600}'.repeat(201), timestamp: '?' }),
      edgeNote.timeUnreadable | edgeNote.distinctIdCut | edgeNote.nameCut,
    )
  })
})

describe('normalizeDistinctId', () => {
  it('keeps blanks around an id, and returns no id for blanks alone', () => {
    assert.equal(normalizeDistinctId('  hello  '), '  hello  ')
    for (const blank of ['', ' ', ' \t\n', '\u00a0\u2003']) assert.equal(normalizeDistinctId(blank), '')
  })
  it('replaces NUL and cuts to 200 code points without splitting a character', () => {
    assert.equal(normalizeDistinctId('a\0b'), 'a\ufffdb')
    assert.equal(normalizeDistinctId('\u{1f600}'.repeat(201)), '\u{1f600}'.repeat(200))
    assert.equal(normalizeDistinctId(`${'x'.repeat(199)}\u{1f600}y`), `${'x'.repeat(199)}\u{1f600}`)
  })
})

describe('cutRejectBody', () => {
  it('keeps short texts, and cuts long ones by bytes without splitting a character', () => {
    assert.equal(cutRejectBody('€'), '€')
    const cut = cutRejectBody('€'.repeat(rejectBodyBytesMax))
    assert.equal(cut, '€'.repeat(Math.floor(rejectBodyBytesMax / 3)))
  })
})
