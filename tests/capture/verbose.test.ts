// `?verbose=1`: good events are stored, bad ones are itemised with the reasons of docs/wire/errors.md, both on the
// event loop and in decode threads.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CaptureServer, startCaptureServer, testToken } from '../support/capture-server.ts'
import { fieldOf, fieldsOf } from '../support/fields-of.ts'

interface Verdict {
  readonly index: number
  readonly uuid: string | null
  readonly event: string | null
  readonly result: string
  readonly reason: string | null
  readonly field: string | null
  readonly detail: string | null
}

interface VerboseBody {
  readonly status?: string
  readonly type?: string
  readonly code?: string
  readonly detail?: string
  readonly attr?: string | null
  readonly counts: Readonly<Record<string, number>>
  readonly events: readonly Verdict[]
  readonly not_itemised?: number
}

const json = (value: unknown) => JSON.stringify(value)
const good = { event: 'e', distinct_id: 'u' }
const having = (properties: object, event = 'e') => ({ ...good, event, properties })
const batch = (items: readonly unknown[], over: object = {}) => json({ api_key: testToken, batch: items, ...over })

async function verboseAnswer(response: Response): Promise<{ status: number; body: VerboseBody }> {
  assert.equal(response.headers.get('content-type'), 'application/json')
  return { status: response.status, body: (await response.json()) as VerboseBody }
}

async function send(server: CaptureServer, items: readonly unknown[], over: object = {}) {
  return verboseAnswer(await server.post('/batch/?verbose=1', batch(items, over)))
}

const reasons = ({ events }: VerboseBody) => fieldsOf(events, 'result', 'reason', 'field')

/** Items with the result, reason and field that each has to get when sent between good ones. */
const judged: readonly (readonly [item: unknown, verdict: string])[] = [
  [7, 'reject invalid_shape'],
  [null, 'reject invalid_shape'],
  [[good], 'reject invalid_shape'],
  [{ distinct_id: 'u' }, 'reject missing_event_name event'],
  [{ ...good, event: 5 }, 'reject invalid_shape event'],
  [{ ...good, event: '' }, 'reject missing_event_name event'],
  [{ event: 'e' }, 'reject missing_distinct_id distinct_id'],
  [{ ...good, distinct_id: ' ' }, 'reject missing_distinct_id distinct_id'],
  [{ ...good, $distinct_id: 'v' }, 'reject invalid_shape distinct_id'],
  [{ ...good, distinct_id: [1, 'x'.repeat(70_000)] }, 'reject invalid_shape distinct_id'],
  [{ ...good, uuid: 'x' }, 'reject invalid_shape uuid'],
  [{ ...good, properties: ['a'] }, 'reject invalid_shape properties'],
  [{ ...good, timestamp: 5 }, 'reject invalid_shape timestamp'],
  [{ ...good, offset: 1.5 }, 'reject invalid_shape offset'],
  [{ ...good, $set: ['a'] }, 'reject invalid_shape $set'],
  [{ ...good, $set_once: 'a' }, 'reject invalid_shape $set_once'],
  [{ ...good, token: testToken, api_key: testToken }, 'reject invalid_shape api_key'],
  [having({ $cookieless_mode: 'x' }), 'reject invalid_cookieless_mode $cookieless_mode'],
  [having({ a: 'x'.repeat(1_000_000) }), 'reject event_too_large properties'],
  [{ ...good, timestamp: 'long ago' }, 'warning ignored_invalid_timestamp timestamp'],
  [{ ...good, distinct_id: 'x'.repeat(201) }, 'warning distinct_id_truncated distinct_id'],
  [{ ...good, event: 'x'.repeat(201) }, 'warning event_name_truncated event'],
  [{ ...good, event: '$performance_event' }, 'drop dropped_performance_event'],
  [having({ alias: 7 }, '$create_alias'), 'drop invalid_alias'],
  [having({ $cookieless_mode: true }), 'drop cookieless_team_disabled'],
  [
    having({ $anon_distinct_id: 'a', $process_person_profile: false }, '$identify'),
    'drop invalid_event_when_process_person_profile_is_false',
  ],
  [having({ $group_type: 'org', $group_key: 'k'.repeat(401) }, '$groupidentify'), 'drop group_key_too_long'],
  [{ ...good, event: '$$heatmap' }, 'drop heatmap'],
  [{ ...good, event: '$$client_ingestion_warning' }, 'drop client_ingestion_warning'],
]

describe('capture with verbose answers', () => {
  it('gives each bad item a separate result and stores the other items', async t => {
    const server = await startCaptureServer(t)
    let [eventCount, rejectCount] = [0, 0]
    for (const [item, verdict] of judged) {
      const what = `${verdict}: ${json(item).slice(0, 100)}`
      const [result, reason = null, field = null] = verdict.split(' ')
      const last = { ...good, uuid: '0197C5A0-0000-7000-8000-000000000001' }
      const { status, body } = await send(server, [good, item, last])
      assert.deepEqual([status, body.status], [200, 'Ok'], what)
      const okay = ['ok', null, null]
      assert.deepEqual(reasons(body), [okay, [result, reason, field], okay], what)
      assert.deepEqual(fieldOf(body.events, 'index'), [0, 1, 2], what)
      assert.deepEqual([typeof body.events[1]!.detail, body.events[0]!.detail], ['string', null], what)
      assert.equal(body.events[2]!.uuid, '0197c5a0-0000-7000-8000-000000000001')
      const kept = await server.records()
      const told = body.events.filter((_, index) => index !== 1 || result === 'warning')
      const stored = kept.events.slice(eventCount)
      if (result === 'drop' && stored.length === 3) stored.splice(1, 1) // the worker drops it
      assert.deepEqual(fieldOf(stored, 'uuid'), fieldOf(told, 'uuid'), what)
      if (result === 'drop') assert.equal(body.events[1]!.uuid, null, 'its sender cannot know one that was made here')
      const rejects = result === 'reject' ? [[reason, field ?? '', 'main']] : []
      assert.deepEqual(fieldsOf(kept.rejects.slice(rejectCount), 'reason', 'field', 'lane'), rejects, what)
      eventCount = kept.events.length
      rejectCount = kept.rejects.length
    }
  })

  it('can also be requested by a header, on every path', async t => {
    const server = await startCaptureServer(t)
    const body = batch([good, { event: 'e' }])
    for (const path of ['/capture/', '/batch', '/e/', '/i/v0/e/', '/track/', '/engage/', '/i/v0/ai/batch/']) {
      const answers = [
        await server.post(path, body, { 'x-pennon-verbose': '1' }),
        await server.post(`${path}?verbose=true`, body),
      ]
      for (const answer of answers) {
        const { status, body } = await verboseAnswer(answer)
        assert.deepEqual([status, body.counts.ok, body.counts.reject], [200, 1, 1], path)
      }
    }
    assert.equal((await server.post('/batch/?verbose=0', body)).status, 400)
    assert.equal((await server.post('/batch/', body, { 'x-pennon-verbose': 'no' })).status, 400)
  })

  it('answers 400 in the format of the first error when no event is left', async t => {
    const server = await startCaptureServer(t)
    const { status, body } = await send(server, [
      { ...good, event: '$performance_event' },
      { ...good, uuid: 'x' },
      { event: 'e' },
    ])
    assert.equal(status, 400)
    const { type, code, detail, attr, counts } = body
    assert.deepEqual([type, code, attr], ['validation_error', 'invalid_shape', 'uuid'])
    assert.equal(detail, 'uuid must be a UUID')
    assert.deepEqual(counts, { ok: 0, warning: 0, drop: 1, reject: 2 })
    assert.equal(body.events.length, 3)
    assert.deepEqual((await server.records()).events, [])
  })

  it('answers 200 when events were dropped and none was rejected', async t => {
    const server = await startCaptureServer(t)
    const { status, body } = await send(server, [{ ...good, event: '$performance_event' }])
    assert.deepEqual([status, body.status, body.counts.drop], [200, 'Ok', 1])
  })

  it('accepts a single event, a list, and an object without a name on /engage', async t => {
    const server = await startCaptureServer(t)
    const single = await verboseAnswer(await server.post('/e/?verbose=1', json({ ...good, api_key: testToken })))
    assert.deepEqual(reasons(single.body), [['ok', null, null]])
    const bad = await verboseAnswer(
      await server.post('/e/?verbose=1', json({ ...good, uuid: 'x', api_key: testToken })),
    )
    assert.deepEqual([bad.status, bad.body.code, bad.body.events.length], [400, 'invalid_shape', 1])
    const list = await verboseAnswer(await server.post('/e/?verbose=1', json([5, { ...good, token: testToken }])))
    assert.deepEqual(reasons(list.body), [
      ['reject', 'invalid_shape', null],
      ['ok', null, null],
    ])
    const engage = await verboseAnswer(
      await server.post('/engage/?verbose=1', json({ distinct_id: 'u', $set: { a: 1 }, api_key: testToken })),
    )
    assert.deepEqual([engage.status, engage.body.events[0]!.event], [200, '$identify'])
  })

  it('rejects the whole request for invalid JSON, envelopes and keys', async t => {
    const server = await startCaptureServer(t)
    const sent: readonly (readonly [body: string, status: number, code: string])[] = [
      ['{"batch":', 400, 'invalid_json'],
      [batch([]), 400, 'empty_batch'],
      ['[]', 400, 'empty_batch'],
      ['5', 400, 'invalid_shape'],
      [json({ batch: [good] }), 400, 'missing_api_key'],
      [batch([good], { historical_migration: 'true' }), 400, 'invalid_shape'],
      [json({ api_key: 'phx_1', batch: [good] }), 401, 'invalid_api_key'],
      [json({ api_key: 'phc_other', batch: [good] }), 401, 'unknown_api_key'],
      [json([good]), 401, 'missing_api_key'],
      [
        json([
          { ...good, token: 'a' },
          { ...good, token: 'b' },
        ]),
        401,
        'inconsistent_api_keys',
      ],
    ]
    for (const [body, status, code] of sent) {
      const answer = await server.post('/batch/?verbose=1', body)
      const error = (await answer.json()) as Record<string, unknown>
      assert.deepEqual([answer.status, error.code, 'events' in error], [status, code, false], body)
    }
    assert.deepEqual((await server.records()).events, [])
  })

  it('reports import events with unreadable times, and accepted unknown keys', async t => {
    const server = await startCaptureServer(t)
    const imported = await send(server, [good, { ...good, timestamp: 'long ago' }], { historical_migration: true })
    assert.deepEqual(reasons(imported.body), [
      ['ok', null, null],
      ['reject', 'timestamp_invalid', 'timestamp'],
    ])
    assert.deepEqual((await server.records()).rejects[0]!.lane, 'historical')
    const open = await startCaptureServer(t, { unknownKeys: 'accept' })
    const unknown = await verboseAnswer(
      await open.post('/batch/?verbose=1', json({ api_key: 'phc_other', batch: [good, {}] })),
    )
    assert.deepEqual([unknown.status, unknown.body.counts.drop], [200, 2])
    assert.equal(unknown.body.events[0]!.reason, 'unknown_api_key')
  })

  it('lists events left out in import-only mode or because of an unknown key, in a decode thread too', async t => {
    const uuid = '0197c5a0-0000-7000-8000-000000000003'
    const items = [{ ...good, uuid }, good, { event: 'bad', uuid }, { ...good, event: '$performance_event' }, 7]
    const named = [
      [uuid, 'e'],
      [null, 'e'],
      [uuid, 'bad'],
      [null, '$performance_event'],
      [null, null],
    ]
    const importOnly = await startCaptureServer(t, { importOnly: true })
    const large = { ...good, event: 'large', properties: { a: 'x'.repeat(600_000) } }
    let sent = 0
    for (const more of [[], [large, large]]) {
      sent += items.length + more.length
      const { status, body } = await send(importOnly, [...items, ...more])
      assert.deepEqual([status, body.counts.drop, body.counts.reject], [200, items.length + more.length, 0])
      assert.ok(body.events.every(({ index, reason }, at) => index === at && reason === 'non_historical_import_drop'))
      assert.equal(importOnly.refused.get('non_historical_import_drop'), sent)
      const expected = [...named, ...more.map(() => [null, 'large'])]
      assert.deepEqual(fieldsOf(body.events, 'uuid', 'event'), expected)
    }
    const open = await startCaptureServer(t, { unknownKeys: 'accept' })
    const { body } = await verboseAnswer(
      await open.post('/batch/?verbose=1', json({ api_key: 'phc_other', batch: items })),
    )
    assert.deepEqual(fieldsOf(body.events, 'uuid', 'event'), named)
  })

  it('stores each bad item as a separate reject, as it was sent, with the data for a replay', async t => {
    const server = await startCaptureServer(t)
    const bad = { event: 'e', properties: { price: 1.5 }, uuid: '0197c5a0-0000-7000-8000-000000000002' }
    await send(server, [good, bad, 7], { sent_at: '2025-07-01T10:59:00Z' })
    const { rejects } = await server.records()
    assert.deepEqual(fieldsOf(rejects, 'reason', 'uuid', 'name', 'body'), [
      ['invalid_shape', '', '', '7'],
      ['missing_distinct_id', bad.uuid, 'e', json(bad)],
    ])
  })

  it('gives the same answers in a decode thread', async t => {
    const server = await startCaptureServer(t)
    const items = [...judged.map(([item]) => item), good]
    const inline = items.filter(item => json(item).length < 100_000)
    const here = await send(server, inline)
    const padding = { ...good, properties: { a: 'x'.repeat(900_000) } }
    const there = await send(server, [...inline, padding, padding])
    assert.deepEqual(reasons(there.body).slice(0, inline.length), reasons(here.body))
    assert.equal(there.body.counts.ok, here.body.counts.ok! + 2)
    const { rejects } = await server.records()
    const half = rejects.length / 2
    assert.deepEqual(
      fieldsOf(rejects.slice(0, half), 'reason', 'body'),
      rejects.slice(half).map(({ reason, body }) => [reason, body]),
    )
  })
})
