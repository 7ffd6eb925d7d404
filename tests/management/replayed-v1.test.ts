// Replays of rejects of capture protocol v1: with the headers that they were sent with, and each event once.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noQuotas, type Quotas } from '#core/project.ts'
import { uuidOf, v1Event, v1Headers, v1Path } from '../capture/v1-requests.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { nowMs, receivedAtMs, refusedRequests, startReplayWorld } from './replay-world.ts'

const createdAt = '2025-07-01T11:00:00Z'
const batch = (events: readonly unknown[], over: object = {}) => ({ created_at: createdAt, batch: events, ...over })
const sentAtMs = Date.parse('2025-07-01T10:59:30Z')
const headers = { ...v1Headers, 'posthog-request-timestamp': new Date(sentAtMs).toISOString() }

describe('a replay of a v1 rejection', () => {
  it('stores a repaired event that had been dropped, with the event’s original times and library', async t => {
    const dropped = v1Event(1, { options: { disable_skew_correction: 'maybe' }, session_id: 's' })
    const imported = v1Event(2, { timestamp: 'never' })
    const rejects = await refusedRequests(t, [
      [v1Path, batch([dropped, v1Event(3)]), headers],
      [v1Path, batch([imported], { historical_migration: true, capture_internal: true }), headers],
    ])
    const { replay, appended, list } = await startReplayWorld(t, rejects)
    assert.deepEqual(
      (await list()).results.map((r: Record<string, unknown>) => [r.body_kind, r.body_cut, r.uuid, r.lane]).toSorted(),
      [
        ['item', false, uuidOf(1), 'main'],
        ['item', false, uuidOf(2), 'historical'],
      ],
    )
    const again = await replay({ filter: {} })
    assert.deepEqual(again.body.counts, { stored: 0, refused: 2, cannot: 0, events: 0 })
    const told = fieldsOf(again.body.results, 'reason', 'field')
    assert.deepEqual(told.toSorted(), [
      ['invalid_event_timestamp', 'timestamp'],
      ['invalid_options', 'options.disable_skew_correction'],
    ])
    assert.deepEqual(await appended(), [])

    const repaired = rejects.map(reject => {
      return { ...reject, body: reject.body.replace('"maybe"', 'false').replace('never', '2019-01-01T00:00:00Z') }
    })
    const world = await startReplayWorld(t, repaired)
    const first = await world.replay({ filter: {} })
    assert.deepEqual(first.body.counts, { stored: 2, refused: 0, cannot: 0, events: 2 })
    const events = (await world.appended()).toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1))
    const [live, old] = events
    assert.deepEqual(
      [live!.uuid, live!.protocol, live!.receivedAtMs, live!.capturedAtMs, live!.timestampMs, live!.sentAtMs, live!.ip],
      [
        ...[uuidOf(1), 'v1', receivedAtMs, nowMs],
        ...[Date.parse('2025-07-01T10:59:58.123Z') + receivedAtMs - sentAtMs, sentAtMs, '203.0.113.9'],
      ],
    )
    const { $lib: lib, $session_id: session } = JSON.parse(live!.propertiesJson)
    assert.deepEqual([lib, session], ['posthog-rs', 's'])
    assert.deepEqual([old!.lane, old!.importJobId, old!.ip], ['historical', 1, '127.0.0.1'])
    assert.equal(new Date(old!.timestampMs).toISOString(), '2019-01-01T00:00:00.000Z')
    await world.replay({ filter: { replayed: true } })
    const identity = (event: object) => JSON.stringify({ ...event, capturedAtMs: 0 })
    const twice = (await world.appended()).map(identity).toSorted()
    assert.deepEqual(twice, [...events, ...events].map(identity).toSorted(), 'a second replay stores the same events')
  })

  it('reads a rejected request again, and stores each event that is valid by itself', async t => {
    const events = [
      v1Event(1),
      v1Event(1, { event: 'again' }),
      5,
      v1Event(2, { distinct_id: 7 }),
      v1Event(3, { uuid: ' ' }),
      v1Event(4, { event: '' }),
      v1Event(5),
    ]
    const rejects = await refusedRequests(t, [[v1Path, batch(events), headers]])
    const { replay, appended } = await startReplayWorld(t, rejects)
    const ids = fieldOf(rejects, 'rejectId')
    const strict = await replay({ ids })
    const { result, reason, field } = strict.body.results[0]
    assert.deepEqual([result, reason, field], ['refused', 'request_parsing_error', 'batch.2'])
    const partial = await replay({ ids, partial: true })
    assert.deepEqual(partial.body.results, [
      { id: ids[0], result: 'stored', reason: null, field: null, events: 2, events_refused: 5 },
    ])
    assert.deepEqual(fieldsOf(await appended(), 'uuid', 'name'), [
      [uuidOf(1), '$pageview'],
      [uuidOf(5), '$pageview'],
    ])
    const nothing = await refusedRequests(t, [[v1Path, batch([v1Event(1, { uuid: 'x' }), 7]), headers]])
    const world = await startReplayWorld(t, nothing)
    const { body } = await world.replay({ filter: {}, partial: true })
    assert.deepEqual([body.results[0].result, body.results[0].field], ['refused', 'batch.1'])
  })

  it('applies the rules of the AI path, and reports events over a quota, in a dry run too', async t => {
    const rejects = await refusedRequests(t, [
      ['/i/v1/ai/events', batch([v1Event(1)]), headers],
      [v1Path, batch([v1Event(2, { event: '$exception', options: 5 })]), headers],
    ])
    const repaired = rejects.map(reject => ({ ...reject, body: reject.body.replace('"options":5', '"options":null') }))
    const world = await startReplayWorld(t, repaired)
    const reasons = async (quotas: Quotas) => {
      world.quotas = quotas
      const rehearsed = await world.replay({ filter: {}, dry_run: true })
      const { body } = await world.replay({ filter: {} })
      assert.deepEqual(rehearsed.body.results, body.results)
      return body.results.map((r: { reason: string }) => r.reason).toSorted()
    }
    assert.deepEqual(await reasons({ ...noQuotas, exceptions: 0 }), ['exceptions_over_quota', 'misrouted_event'])
    assert.deepEqual(await reasons({ ...noQuotas, events: 0 }), ['events_over_quota', 'misrouted_event'])
    assert.deepEqual(await world.appended(), [])
  })

  it('is rejected for a truncated body', async t => {
    const long = v1Event(1, { event: '', properties: { a: 'x'.repeat(70_000) } })
    const rejects = await refusedRequests(t, [
      [v1Path, batch([long]), headers],
      [v1Path, batch([long, long]), headers],
    ])
    const { replay, list } = await startReplayWorld(t, rejects)
    const { body } = await replay({ filter: {} })
    assert.deepEqual(fieldOf(body.results, 'reason'), ['body_cut', 'body_cut'])
    const kinds = fieldsOf((await list()).results, 'body_kind', 'body_cut')
    assert.deepEqual(kinds.toSorted(), [
      ['item', true],
      ['request', true],
    ])
  })

  it('drops cookieless events, whose visitors were not stored, and reports that', async t => {
    const page = { $cookieless_mode: true, $raw_user_agent: 'Mozilla/5.0', $host: 'shop.example.com' }
    const visit = v1Event(1, { distinct_id: '$posthog_cookieless', properties: page })
    const rejects = await refusedRequests(t, [[v1Path, batch([{ ...visit, uuid: 'x' }, 5]), headers]])
    const repaired = rejects.map(reject => ({
      ...reject,
      body: reject.body.replace('"uuid":"x"', `"uuid":"${uuidOf(1)}"`).replace(',5]', ']'),
    }))
    assert.doesNotMatch(JSON.stringify(rejects), /Mozilla|203\.0/)
    const { replay, appended } = await startReplayWorld(t, repaired)
    const { body } = await replay({ filter: {} })
    assert.deepEqual([body.results[0].result, body.results[0].reason], ['refused', 'cookieless_team_disabled'])
    assert.deepEqual(await appended(), [])
  })
})
