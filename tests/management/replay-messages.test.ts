import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { compressItems } from '#core/capture/compressed-items.ts'
import type { EventStore } from '#ports/events/event-store.ts'
import type { RecordingQuery, RecordingView } from '#ports/events/recording-store.ts'
import { PortError } from '#ports/port-error.ts'
import { startManagement } from '../support/management-api.ts'

const path = '/api/projects/1/replay_messages/'
const uuid = '0195a000-0000-7000-8000-000000000001'
const json = '[{"n":1.0,"big":12345678901234567890},"é"]'

const recording: RecordingView = {
  projectId: 1,
  uuid,
  sessionId: 's1',
  windowId: 'w1',
  distinctId: 'ada',
  snapshotSource: 'mobile',
  lib: 'posthog-ios',
  itemCount: 2,
  itemsBytes: Buffer.byteLength(json),
  timestampMs: Date.parse('2026-04-30T10:00:00.123Z'),
  receivedAtMs: Date.parse('2026-04-30T10:00:01Z'),
}
const shown = {
  ...{ id: uuid, session_id: 's1', window_id: 'w1', distinct_id: 'ada', snapshot_source: 'mobile' },
  ...{ lib: 'posthog-ios', items: 2, bytes: recording.itemsBytes },
  ...{ timestamp: '2026-04-30T10:00:00.123Z', received_at: '2026-04-30T10:00:01.000Z' },
}

/** A store with scripted answers that records its calls. */
function scripted(over: Partial<EventStore> = {}) {
  const queries: RecordingQuery[] = []
  const events = {
    listRecordings: async (query: RecordingQuery) => {
      queries.push(query)
      return { recordings: [recording], next: { timestampMs: recording.timestampMs, uuid } }
    },
    ...over,
  }
  return { events, queries }
}

describe('replay messages', () => {
  it('are listed without their snapshots, with a `next` that keeps the bounds', async t => {
    const { events, queries } = scripted()
    const api = await startManagement(t, { events })
    const body = await api.get(`${path}?session_id=s1&distinct_id=ada&after=-7d&before=-12h&limit=1`)
    assert.deepEqual(body.results, [shown])
    const asked = {
      ...{ projectId: 1, sessionId: 's1', distinctId: 'ada', limit: 1 },
      ...{ afterMs: Date.parse('2026-04-24T12:00:00Z'), beforeMs: Date.parse('2026-05-01T00:00:00Z') },
    }
    const next = new URL(body.next)
    assert.equal(next.searchParams.get('after'), '2026-04-24T12:00:00.000Z')
    assert.equal(next.searchParams.get('before'), '2026-05-01T00:00:00.000Z')
    await api.call('GET', next.pathname + next.search)
    assert.deepEqual(queries, [asked, { ...asked, after: { timestampMs: recording.timestampMs, uuid } }])
    assert.equal((await api.call('GET', `${path}?cursor=1_2`)).status, 400)
    assert.equal((await api.call('GET', `${path}?limit=0`)).status, 400)
  })

  it('are returned individually with their snapshots as sent, or without snapshots once those are deleted', async t => {
    const items = compressItems(Buffer.from(json))
    const { events } = scripted({ findRecording: async () => ({ recording, items }) })
    const api = await startManagement(t, { events })
    const { status, text, body, headers } = await api.call('GET', `${path}${uuid}/`)
    assert.equal(status, 200)
    assert.match(headers.get('content-type') ?? '', /^application\/json/)
    assert.ok(text.endsWith(`,"snapshot_items":${json}}`), text)
    const { snapshot_items, ...rest } = body
    assert.deepEqual(rest, shown)
    const gone = await startManagement(t, scripted({ findRecording: async () => ({ recording, items: null }) }))
    assert.equal((await gone.call('GET', `${path}${uuid}/`)).body.snapshot_items, null)
  })

  it('answer 404 when missing, and 503 when the store is down', async t => {
    const down = () => Promise.reject(new PortError('event-store', 'unavailable'))
    const { events } = scripted({ findRecording: async () => null, listRecordings: down })
    const api = await startManagement(t, { events })
    assert.equal((await api.call('GET', `${path}${uuid}/`)).status, 404)
    assert.equal((await api.call('GET', `${path}no-uuid/`)).status, 404)
    await api.refuses('GET', path, ['', null, 'event_store_unavailable'])
  })
})
