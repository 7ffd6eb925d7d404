// A distinct id that sends too many events, over the real endpoints: the records in the log, and the answers.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { type CapturedEvent, edgeNote } from '#core/events/captured-event.ts'
import { startCaptureServer, testToken } from '../support/capture-server.ts'
import { sendV1 } from './v1-requests.ts'

const shown = ({ name, distinctId, lane, personProcessingForcedOff }: CapturedEvent) =>
  `${distinctId} ${name} ${lane}${personProcessingForcedOff ? ' off' : ''}`
const batch = (items: readonly object[], more: object = {}) =>
  JSON.stringify({ api_key: testToken, batch: items, ...more })
const item = (distinct_id: string, event = 'e') => ({ event, distinct_id, uuid: randomUUID() })

describe('a hot key', () => {
  it('has its events stored without a person, outside the main lane, while it is hot; plain v0 answers omit this', async t => {
    const server = await startCaptureServer(t, { hotKeyEventsPerMinute: 2 })
    const answers = [
      await server.post(
        '/batch/',
        batch([item('hot'), item('ü'), item('hot'), item('hot'), item('hot', '$exception')]),
      ),
      await server.post('/e/', JSON.stringify({ api_key: testToken, ...item('hot') })),
    ]
    for (const answer of answers) assert.deepEqual([answer.status, await answer.text()], [200, '{"status":"Ok"}'])
    server.clock.advance(61_000)
    await server.post('/batch/', batch([item('hot')]))
    const { events } = await server.records()
    assert.deepEqual(events.map(shown), [
      'hot e main',
      'ü e main',
      'hot e main',
      'hot e overflow off',
      'hot $exception error_tracking off',
      'hot e overflow off',
      'hot e main',
    ])
    const accepted = Object.fromEntries(
      (await server.metrics.eventsAccepted.get()).values.map(({ labels, value }) => [labels.lane, value]),
    )
    assert.deepEqual([accepted.main, accepted.overflow, accepted.error_tracking], [4, 2, 1])
    assert.equal((await server.metrics.hotKeyEvents.get()).values[0]!.value, 3)
    assert.deepEqual(
      events.map(({ notes }) => notes === edgeNote.personsSwitchedOff),
      [false, false, false, true, true, true, false],
    )
  })

  it('is not caused by an import, and does not affect imports', async t => {
    const server = await startCaptureServer(t, { hotKeyEventsPerMinute: 2 })
    const items = Array.from({ length: 5 }, () => item('hot'))
    const flagged = { historical_migration: true }
    await server.post('/batch/', batch([...items, item('hot', '$exception')], flagged))
    await server.post('/batch/', batch([item('hot'), item('hot')]))
    await server.post('/batch/', batch([item('hot')], flagged))
    const { events } = await server.records()
    assert.ok(events.every(event => !event.personProcessingForcedOff))
    await server.post('/batch/', batch([item('hot')]))
    assert.equal((await server.records()).events.filter(event => event.lane === 'overflow').length, 1)
  })

  it('is reported per event by v0 with `verbose`, in a decode thread too', async t => {
    const server = await startCaptureServer(t, { hotKeyEventsPerMinute: 2 })
    const ask = async (items: readonly object[]) => {
      const response = await server.post('/batch/?verbose=1', batch(items))
      assert.equal(response.status, 200)
      return (await response.json()) as { counts: object; events: Record<string, unknown>[] }
    }
    const heatmap = { ...item('hot', '$$heatmap'), properties: { $heatmap_data: {} } }
    const small = await ask([
      item('hot'),
      item('cold'),
      item('hot'),
      { ...item('hot'), timestamp: '?' },
      heatmap,
      item('hot'),
    ])
    assert.deepEqual(small.counts, { ok: 3, warning: 2, drop: 1, reject: 0 })
    assert.deepEqual(
      small.events.map(({ result, reason }) => reason ?? result),
      ['ok', 'ok', 'ok', 'ignored_invalid_timestamp', 'heatmap', 'person_processing_disabled'],
    )
    const { index, field, detail } = small.events.at(-1)!
    assert.deepEqual([index, field], [5, 'distinct_id'])
    assert.match(String(detail), /stored without person processing/)
    const large = await ask(Array.from({ length: 2_100 }, (_, n) => item(n % 2 === 0 ? 'hot' : `id ${n}`)))
    assert.deepEqual(large.counts, { ok: 1_050, warning: 1_050, drop: 0, reject: 0 })
    assert.ok(large.events.every(({ reason }, n) => reason === (n % 2 === 0 ? 'person_processing_disabled' : null)))
    const { events } = await server.records()
    assert.ok(events.slice(-2_100).every(event => event.personProcessingForcedOff === (event.lane === 'overflow')))
  })

  it('is reported per event by v1', async t => {
    const server = await startCaptureServer(t, { hotKeyEventsPerMinute: 1, now: '2026-11-01T00:00:00Z' })
    const created_at = '2026-11-01T00:00:00Z'
    const v1 = (distinct_id: string) => ({ ...item(distinct_id), timestamp: created_at })
    const items = [v1('hot'), v1('guest'), v1('hot'), v1('cold')]
    const { status, json } = await sendV1(server, JSON.stringify({ created_at, batch: items }), {
      'posthog-request-timestamp': created_at,
    })
    assert.equal(status, 200)
    const off = 'person_processing_disabled'
    assert.deepEqual(
      items.map(({ uuid }) => json.results[uuid]),
      [{ result: 'ok' }, { result: 'ok', details: off }, { result: 'warning', details: off }, { result: 'ok' }],
    )
    assert.deepEqual((await server.records()).events.map(shown), [
      'hot e main',
      'guest e main off',
      'hot e overflow off',
      'cold e main',
    ])
  })
})
