import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { anIncomingEvent } from '../../../tests/support/incoming-requests.ts'
import { edgeNote } from '../events/captured-event.ts'
import type { IncomingEvent } from './incoming-event.ts'
import { chooseLane, type EventContext, eventBytesMax, normalizeDistinctId, normalizeEvent } from './normalize-event.ts'
import { rejectBodyBytesMax, truncateRejectBody } from './reject-body.ts'

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

function normalized(over: Partial<IncomingEvent>, contextOver: Partial<EventContext> = {}) {
  const item = { name: 'signed up', timestamp: '2025-07-01T10:00:00Z', propertiesJson: '{"a":1.0}', ...over }
  return normalizeEvent(anIncomingEvent(item), { ...context, ...contextOver })
}

describe('normalizeEvent', () => {
  it('fills in the missing fields of an event', () => {
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
  it('reports the first fault in the order that the protocol prescribes', () => {
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
  it('gives events of the service’s own tools the loopback address', () => {
    const event = normalized({ captureInternal: true })
    assert.equal(event.ok && event.value.ip, '127.0.0.1')
  })
})

describe('chooseLane', () => {
  it('depends on the event name first, then on the historical flag', () => {
    for (const [name, live, imported] of [
      ['$exception', 'error_tracking', 'error_tracking'],
      ['$$heatmap', 'heatmaps', 'heatmaps'],
      ['$$client_ingestion_warning', 'warnings', 'warnings'],
      ['$ai_span', 'ai', 'ai'],
      ['$pageview', 'main', 'historical'],
      ['x', 'main', 'historical'],
      ['$ai_own', 'main', 'historical'],
    ] as const)
      assert.deepEqual([chooseLane(name, false), chooseLane(name, true)], [live, imported])
  })
})

// tests/capture/rerouting.test.ts has the threshold and the lanes that it concerns.
it('rerouting by age uses the corrected time, and an imported group event gets the name that SDKs use', () => {
  const rerouted = (over: Partial<IncomingEvent>, contextOver: Partial<EventContext> = {}) => {
    const outcome = normalized({ name: '$group_identify', ...over }, { rerouteOlderThanMs: 86_400_000, ...contextOver })
    return (
      outcome.ok && [
        outcome.value.lane,
        outcome.value.historicalMigration,
        outcome.value.importJobId,
        outcome.value.name,
      ]
    )
  }
  const live = ['main', false, 0, '$group_identify']
  const imported = ['historical', true, 1, '$groupidentify']
  const sentAtMs = Date.parse('2025-06-20T11:00:00Z')
  assert.deepEqual(rerouted({ timestamp: '2025-06-20T10:59:00Z' }), imported)
  assert.deepEqual(rerouted({ timestamp: '2025-06-20T10:59:00Z' }, { sentAtMs }), live)
  assert.deepEqual(rerouted({ timestamp: null, offsetMs: 86_400_000 }), imported)
  assert.deepEqual(rerouted({ timestamp: null }), live)
  assert.deepEqual(rerouted({ timestamp: '1999-01-01T00:00:00Z' }, { rerouteOlderThanMs: null }), live)
  const job = { historicalMigration: true, importJobId: 9 }
  assert.deepEqual(rerouted({ timestamp: '2020-01-01T00:00:00Z' }, job), ['historical', true, 9, '$groupidentify'])
})

describe('the notes that the edge makes on an accepted event', () => {
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
  it('report which values were truncated', () => {
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

it('normalizeDistinctId returns no id for blanks alone, replaces NUL, and truncates between characters', () => {
  for (const blank of ['', ' ', ' \t\n', '\u00a0\u2003']) assert.equal(normalizeDistinctId(blank), '')
  assert.equal(normalizeDistinctId(' a\0b '), ' a\ufffdb ')
  assert.equal(normalizeDistinctId(`${'x'.repeat(199)}\u{1f600}y`), `${'x'.repeat(199)}\u{1f600}`)
})

describe('truncateRejectBody', () => {
  it('keeps short texts, and truncates long texts by bytes without splitting a character', () => {
    assert.equal(truncateRejectBody('€'), '€')
    const cut = truncateRejectBody('€'.repeat(rejectBodyBytesMax))
    assert.equal(cut, '€'.repeat(Math.floor(rejectBodyBytesMax / 3)))
  })
})
