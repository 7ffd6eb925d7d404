// The reject store as people use it: lists by every filter, and replays through the real capture code into a log.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, it } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import { createRejectFromEvent } from '#core/processing/rejects/rejects.ts'
import { noQuotas } from '#core/project.ts'
import { knownRejectReasons } from '#wire/rejects/reject-reasons.ts'
import { v1Event, v1Headers, v1Path } from '../capture/v1-requests.ts'
import { aReject } from '../ports/reject-store.contract.ts'
import { testToken } from '../support/capture-server.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'
import { aCapturedEvent } from '../support/values.ts'
import { nowMs, receivedAtMs, refusedRequests, rejectsPath, startReplayWorld } from './replay-world.ts'

const good = { event: 'e', distinct_id: 'ada', properties: { price: 1.5 } }

describe('rejected events', () => {
  it('are listed by every filter, in pages, with the kind of their body', async t => {
    const source = {
      kind: 'item',
      isTruncated: true,
      protocol: 'v0',
      engage: false,
      ip: '1.2.3.4',
      sentAtMs: null,
    } as const
    const { list } = await startReplayWorld(t, [
      aReject(1, 1, { reason: 'a', event: 'paid', distinctId: 'ada', lane: 'main', uuid: 'u1', field: 'batch.3.uuid' }),
      aReject(1, 2, { reason: 'b', body: '{"plan":"pro"}', source: { ...source, personProcessingForcedOff: false } }),
      aReject(1, 3, { reason: 'b' }),
      aReject(2, 4),
    ])
    const all = await list()
    assert.equal(all.results.length, 3)
    const [, second] = all.results
    assert.deepEqual([second.body_kind, second.body_cut, second.replayed_at], ['item', true, null])
    assert.ok(!JSON.stringify(all).includes('1.2.3.4'), 'addresses are not shown')
    for (const query of [
      'reason=a',
      'field=uuid',
      'event=paid',
      'distinct_id=ada',
      'uuid=u1',
      'uuid=U1',
      'lane=main',
      `before=${new Date(aReject(1, 2).receivedAtMs).toISOString()}`,
    ])
      assert.deepEqual(fieldOf((await list(`?${query}`)).results, 'reason'), ['a'], query)
    assert.equal((await list('?search=PRO')).results.length, 1)
    assert.equal((await list('?replayed=true')).results.length, 0)
    const first = await list('?limit=2&reason=b&after=-100d')
    assert.equal(first.next, null)
    const page = await list('?limit=2&after=1999-01-01')
    assert.match(page.next, /after=1999-01-01T00%3A00%3A00.000Z&cursor=\d+_/)
    const rest = await list(page.next.slice(page.next.indexOf('?')))
    assert.deepEqual([rest.results.length, rest.next], [1, null])
  })

  it('are found by their id, individually and in the list, but only in their own project', async t => {
    const cut = {
      kind: 'item',
      isTruncated: true,
      protocol: 'v0',
      engage: false,
      ip: '1.2.3.4',
      sentAtMs: null,
    } as const
    const wanted = aReject(1, 0xab, { body: '{"plan":"pro"}', source: { ...cut, personProcessingForcedOff: false } })
    const rejectId = wanted.rejectId.replace('00000000', 'abcdef00')
    const world = await startReplayWorld(t, [{ ...wanted, rejectId }, aReject(1, 2), aReject(2, 3)])
    const { results } = await world.list()
    const inList = results.find(({ id }: { id: string }) => id === rejectId)
    for (const id of [rejectId, rejectId.toUpperCase()]) {
      const { status, body } = await world.api.call('GET', `${rejectsPath}${id}/`)
      assert.deepEqual([status, body], [200, inList], id)
      assert.deepEqual((await world.list(`?id=${id}`)).results, [inList], id)
    }
    assert.deepEqual((await world.list(`?id=${rejectId}&event=another`)).results, [])
    for (const id of [aReject(2, 3).rejectId, aReject(1, 9).rejectId, 'x', 'replays', '%00']) {
      const { status, body } = await world.api.call('GET', `${rejectsPath}${id}/`)
      assert.deepEqual([status, body.code], [404, 'not_found'], id)
      assert.match(body.detail, /no reject with this id/)
    }
    assert.deepEqual((await world.list(`?id=${aReject(2, 3).rejectId}`)).results, [])
    assert.equal((await world.api.call('GET', `${rejectsPath}replay/`)).status, 405)
  })

  it('cannot be listed with meaningless filters', async t => {
    const { api } = await startReplayWorld(t, [])
    for (const query of ['lane=fast', 'replayed=maybe', 'cursor=x', 'after=soon', 'id=x'])
      assert.equal((await api.call('GET', `${rejectsPath}?${query}`)).status, 400, query)
  })

  it('can be filtered by unknown reasons, which another version may have used, but not by misspelt reasons', async t => {
    const retired = aReject(1, 1, { reason: 'retired_reason' })
    const { api, list, replay } = await startReplayWorld(t, [retired])
    for (const [reason, meant] of [
      ['missing_distinctid', 'missing_distinct_id'],
      ['Invalid_Options', 'invalid_options'],
      ['duplicate_uuid', null],
    ] as const) {
      const { status, body } = await api.call('GET', `${rejectsPath}?reason=${reason}`)
      if (meant === null) assert.deepEqual([status, body.results], [200, []], reason)
      else {
        assert.deepEqual([status, body.code, body.attr], [400, 'invalid_input', 'reason'], reason)
        assert.equal(body.detail, `Unknown reason ${reason}. Did you mean ${meant}?`)
      }
    }
    const refused = await replay({ filter: { reason: 'row_refusd' } })
    assert.deepEqual([refused.status, refused.body.attr], [400, 'filter.reason'])
    assert.equal((await list('?reason=retired_reason')).results.length, 1)
    for (const reason of knownRejectReasons) await api.get(`${rejectsPath}?reason=${reason}`)
  })

  it('can be filtered by every documented reason', async () => {
    const reference = await readFile(new URL('../../docs/wire/errors.md', import.meta.url), 'utf8')
    const sections = reference.split(/^##+ /m)
    const codes = sections.flatMap(section => {
      const isOfRequests = /^(v0 capture|Replay|v1 capture)/.test(section)
      if (!isOfRequests && !section.startsWith('Kept as rejects')) return []
      const rows = section.split('\n').filter(line => line.startsWith('| ') && !/\| (408|5\d\d)\b/.test(line))
      return rows.flatMap(row => [...(row.split(' | ')[isOfRequests ? 2 : 0] ?? '').matchAll(/`(\w+)`/g)])
    })
    const reasons = new Set(codes.map(([, code]) => code!))
    assert.ok(reasons.size > 40, String(reasons.size))
    const isNone = new Set(['recordings', 'drop', 'log_record_missing'])
    const unknown = [...reasons].filter(reason => !knownRejectReasons.includes(reason) && !isNone.has(reason))
    assert.deepEqual(unknown, [])
  })
})

describe('a replay', () => {
  it('rejects an invalid event again, and stores the valid events of a request with their original arrival time', async t => {
    const rejects = await refusedRequests(t, [
      [
        '/batch/?_=1751367600000',
        {
          api_key: testToken,
          sent_at: '2025-07-01T10:59:00Z',
          batch: [good, { event: 'e' }, { ...good, timestamp: '2025-07-01T10:00:00Z' }, good],
        },
      ],
    ])
    const { replay, appended, list } = await startReplayWorld(t, rejects)
    const ids = fieldOf(rejects, 'rejectId')
    const strict = await replay({ ids })
    assert.equal(strict.status, 200, strict.text)
    assert.deepEqual(strict.body.results, [
      {
        id: ids[0],
        result: 'refused',
        reason: 'missing_distinct_id',
        field: 'batch.1.distinct_id',
        events: 0,
        events_refused: 0,
      },
    ])
    assert.deepEqual(await appended(), [])
    const partial = await replay({ ids, partial: true })
    assert.deepEqual(partial.body.counts, { stored: 1, refused: 0, cannot: 0, events: 3 })
    assert.equal(partial.body.results[0].events_refused, 1)
    const events = await appended()
    const sentAtMs = Date.parse('2025-07-01T10:59:00Z')
    assert.deepEqual(fieldsOf(events, 'receivedAtMs', 'capturedAtMs', 'timestampMs', 'sentAtMs', 'ip'), [
      [receivedAtMs, nowMs, receivedAtMs, sentAtMs, '203.0.113.9'],
      [receivedAtMs, nowMs, Date.parse('2025-07-01T10:01:00Z'), sentAtMs, '203.0.113.9'],
      [receivedAtMs, nowMs, receivedAtMs, sentAtMs, '203.0.113.9'],
    ])
    assert.equal(new Set(events.map(({ uuid }) => uuid)).size, 3)
    assert.equal((await list('?replayed=true')).results[0].replayed_at, new Date(nowMs).toISOString())
    await replay({ ids, partial: true })
    const again = (await appended()).slice(events.length)
    const identity = ({ uuid, name, distinctId, timestampMs }: CapturedEvent) => [uuid, name, distinctId, timestampMs]
    assert.deepEqual(again.map(identity), events.map(identity), 'a second replay stores the same events')
  })

  it('preserves the path /engage, the send time in the query and the historical flag of a request', async t => {
    const rejects = await refusedRequests(t, [
      ['/engage/?_=1751367540000', { api_key: testToken, distinct_id: ' ', timestamp: '2025-07-01T10:00:00Z' }],
      ['/batch/', { api_key: testToken, historical_migration: true, batch: [{ event: 'e' }, good] }],
    ])
    assert.deepEqual(
      rejects.map(({ source }) => [source!.engage, source!.sentAtMs]),
      [
        [true, 1751367540000],
        [false, null],
      ],
    )
    const repaired = rejects.map(reject => ({ ...reject, body: reject.body.replace('" "', '"ada"') }))
    const { replay, appended } = await startReplayWorld(t, repaired)
    const { body } = await replay({ filter: {}, partial: true })
    assert.deepEqual(body.counts, { stored: 2, refused: 0, cannot: 0, events: 2 })
    assert.deepEqual(
      (await appended()).map(({ name, lane, historicalMigration, importJobId, timestampMs }) => {
        return [name, lane, historicalMigration, importJobId, new Date(timestampMs).toISOString()]
      }),
      [
        ['$identify', 'main', false, 0, '2025-07-01T10:01:00.000Z'],
        ['e', 'historical', true, 1, '2025-07-01T11:00:00.000Z'],
      ],
    )
  })

  it('appends an event unchanged to the log if it had been accepted before it was rejected', async t => {
    const old = { timestampMs: receivedAtMs }
    const numbers = '{"id":12345678901234567890,"n":1e2}'
    const events = [
      aCapturedEvent(1, { ...old, sentAtMs: 5, setJson: '{"a":1.0}', propertiesJson: numbers }),
      aCapturedEvent(2, { protocol: 'v1', personProcessingForcedOff: true, timestampMs: nowMs + 1e10, name: '"\\' }),
      aCapturedEvent(3, { ...old, lane: 'historical', historicalMigration: true, importJobId: 7, setOnceJson: '{}' }),
      aCapturedEvent(4, {
        ...old,
        lane: 'error_tracking',
        historicalMigration: true,
        importJobId: 1,
        name: '$exception',
      }),
    ]
    const rejects = events.map((event, offset) =>
      createRejectFromEvent({ stream: 'main', offset }, event, 'row_refused', 'why'),
    )
    const { replay, appended } = await startReplayWorld(t, rejects, { rerouteOlderThanDays: 1 })
    const { body } = await replay({ filter: { reason: 'row_refused' } })
    assert.deepEqual(body.counts, { stored: 4, refused: 0, cannot: 0, events: 4 })
    const expected = events.map(event => ({ ...event, token: 'phc_first', capturedAtMs: nowMs }))
    assert.deepEqual(
      (await appended()).toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1)),
      expected,
    )
  })

  it('uses the key of the request for a rejected item, and ignores a key or a list inside the item', async t => {
    const bad = { event: 'e', distinct_id: 'd', timestamp: 'never' }
    const items = [
      { ...bad, properties: { token: 'phx_secret' } },
      { ...bad, properties: { token: '' }, data: [good] },
      { ...bad, batch: [{ ...good, event: 'another' }] },
      { ...bad, event: '$identify', token: 'phc_other' },
    ]
    const rejects = await refusedRequests(t, [
      ['/batch/', { api_key: testToken, historical_migration: true, batch: [...items, good] }],
    ])
    const repaired = rejects.map(reject => ({ ...reject, body: reject.body.replace('never', '2025-07-01T10:00:00Z') }))
    const odd = createRejectFromEvent(
      { stream: 'main', offset: 9 },
      aCapturedEvent(9, { propertiesJson: '{"token":"phx_secret"}' }),
      'row_refused',
      'why',
    )
    const { replay, appended } = await startReplayWorld(t, [...repaired, odd])
    const { body } = await replay({ filter: {} })
    assert.deepEqual(body.counts, { stored: 5, refused: 0, cannot: 0, events: 5 })
    const expected = ['$identify d', 'e d', 'e d', 'e d', `${odd.event} ${odd.distinctId}`]
    assert.deepEqual(
      (await appended()).map(({ name, distinctId }) => `${name} ${distinctId}`).toSorted(),
      expected.toSorted(),
    )
  })

  it('is impossible if the body is truncated or unknown, or if the rejected event does not exist', async t => {
    const large = aCapturedEvent(1, { propertiesJson: JSON.stringify({ a: 'x'.repeat(70_000) }) })
    const cut = createRejectFromEvent({ stream: 'main', offset: 1 }, large, 'processing_failed', '')
    const older = aReject(1, 2)
    const { replay } = await startReplayWorld(t, [cut, older])
    const missing = '00000000-0000-5000-8000-00000000abcd'
    const { body } = await replay({ ids: [cut.rejectId, older.rejectId, missing] })
    const reasons = Object.fromEntries(body.results.map((r: { id: string; reason: string }) => [r.id, r.reason]))
    assert.deepEqual(reasons, { [cut.rejectId]: 'body_cut', [older.rejectId]: 'body_unknown', [missing]: 'not_found' })
    assert.equal(body.counts.cannot, 3)
    const world = await startReplayWorld(t, [older, aReject(1, 3, { body: 'x'.repeat(65_534) })])
    const told = fieldOf((await world.list()).results, 'body_cut')
    assert.deepEqual(told.toSorted(), [false, true], 'a body that fills its room was cut')
  })

  it('is rejected for a cookieless event, whose visitor can no longer be identified', async t => {
    const hashed = aCapturedEvent(1, {
      distinctId: 'cookieless_sjSJh5qV4gsbEAc2DG6w7g',
      visitor: { stateful: null, location: null },
      propertiesJson: '{"$cookieless_mode":true,"$host":"example.com"}',
    })
    const reject = createRejectFromEvent({ stream: 'main', offset: 1 }, hashed, 'processing_failed', '')
    const { replay, appended } = await startReplayWorld(t, [reject])
    const { body } = await replay({ filter: {} })
    // The test's project has the mode off.
    assert.deepEqual(
      body.results.map((r: { result: string; reason: string }) => `${r.result} ${r.reason}`),
      ['refused cookieless_team_disabled'],
    )
    assert.deepEqual(await appended(), [])
  })

  it('stores the valid events of a request, and counts the events that it leaves out as rejected', async t => {
    const bad = { event: 'e' }
    const v0Batch = { api_key: testToken, batch: [good, bad, bad] }
    const v1Batch = (events: readonly unknown[]) => ({ created_at: '2025-07-01T11:00:00Z', batch: events })
    const misnamed = (n: number) => v1Event(n, { event: '' })
    const rejects = await refusedRequests(t, [
      ['/batch/', v0Batch],
      ['/batch/', { api_key: testToken, batch: [bad, bad] }],
      ['/e/', { api_key: testToken, ...bad }],
      ['/batch/?verbose=1', { api_key: testToken, batch: [bad] }],
      [v1Path, v1Batch([misnamed(1)]), v1Headers],
      [v1Path, v1Batch([v1Event(2), misnamed(3), { ...misnamed(4), uuid: 'x' }]), v1Headers],
    ])
    const { replay } = await startReplayWorld(t, rejects)
    const { body } = await replay({ filter: {}, partial: true })
    const told = body.results.map((r: Record<string, unknown>) => `${r.result} ${r.events} ${r.events_refused}`)
    const nothing = Array.from({ length: 4 }, () => 'refused 0 0')
    assert.deepEqual(told.toSorted(), [...nothing, 'stored 1 2', 'stored 1 2'])
    const strict = await replay({ filter: { replayed: true }, dry_run: true })
    assert.deepEqual(
      strict.body.results.map((r: Record<string, unknown>) => `${r.result} ${r.events_refused}`),
      ['refused 0', 'refused 0'],
    )
    const limited = await startReplayWorld(t, rejects)
    limited.quotas = { ...noQuotas, events: 0 }
    const over = await limited.replay({ filter: {}, partial: true })
    assert.ok(over.body.results.every((r: Record<string, unknown>) => r.events_refused === 0 && r.events === 0))
  })

  it('goes through filtered rejects oldest first, one batch per call, and skips those already replayed', async t => {
    const events = Array.from({ length: 25 }, (_, n) => aCapturedEvent(n + 1))
    const { replay, appended, list } = await startReplayWorld(
      t,
      events.map((event, offset) => createRejectFromEvent({ stream: 'main', offset }, event, 'row_refused', '')),
    )
    const rehearsal = await replay({ filter: {}, dry_run: true })
    assert.deepEqual([rehearsal.body.dry_run, rehearsal.body.counts.stored], [true, 25])
    assert.deepEqual(await appended(), [])
    assert.equal((await list('?replayed=true')).results.length, 0)
    const remaining: number[] = []
    let cursor: string | undefined
    do {
      const { body } = await replay({ filter: {}, limit: 10, ...(cursor === undefined ? {} : { cursor }) })
      remaining.push(body.remaining)
      cursor = body.next ?? undefined
    } while (cursor !== undefined)
    assert.deepEqual(remaining, [15, 5, 0])
    assert.deepEqual(
      fieldOf(await appended(), 'uuid'),
      events.map(({ uuid }) => uuid),
    )
    assert.equal((await replay({ filter: {} })).body.results.length, 0)
    assert.equal((await replay({ filter: { replayed: true } })).body.results.length, 25)
  })

  it('answers 503 and marks no reject as replayed while the log accepts nothing, and works afterwards', async t => {
    const reject = createRejectFromEvent({ stream: 'main', offset: 1 }, aCapturedEvent(1), 'row_refused', '')
    const world = await startReplayWorld(t, [reject])
    world.logIsDown = true
    const down = await world.replay({ ids: [reject.rejectId] })
    assert.deepEqual([down.status, down.body.code, down.headers.get('retry-after')], [503, 'transient_error', '1'])
    assert.equal((await world.list('?replayed=true')).results.length, 0)
    world.logIsDown = false
    assert.equal((await world.replay({ ids: [reject.rejectId] })).body.counts.stored, 1)
  })

  it('requires ids or a filter', async t => {
    const { replay } = await startReplayWorld(t, [])
    for (const body of [
      {},
      { ids: ['a'], filter: {} },
      { ids: [] },
      { ids: ['a'], limit: 5 },
      { filter: {}, limit: 1_001 },
      { filter: {}, cursor: 'x' },
      { filter: { lane: 'fast' } },
      { filter: { after: 'soon' } },
      { filters: {} },
      { ids: Array.from({ length: 1_001 }, String) },
    ])
      assert.equal((await replay(body)).status, 400, JSON.stringify(body).slice(0, 60))
  })
})
