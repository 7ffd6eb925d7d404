// Quotas and import-only mode over real HTTP: the answers, the records in the log, and the counts.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startCaptureServer, testToken } from '../support/capture-server.ts'
import { fieldOf } from '../support/fields-of.ts'
import { sendV1, v1Batch, v1Event, v1Headers } from './v1-requests.ts'

const ok = { status: 200, text: '{"status":"Ok"}' }

type Server = Awaited<ReturnType<typeof startCaptureServer>>

const item = (event: string, over: object = {}) => ({ event, distinct_id: 'ada', ...over })
const batch = (events: readonly object[], over: object = {}) =>
  JSON.stringify({ api_key: testToken, batch: events, ...over })

async function answerOf(response: Promise<Response>) {
  const { status } = await response
  return { status, text: await (await response).text() }
}

async function namesKept(server: Server): Promise<string[]> {
  return (await server.records()).events.map(({ name }) => name)
}

const mixed = [
  item('first'),
  item('$exception'),
  item('$ai_generation'),
  item('survey sent'),
  item('survey sent', { properties: { $product_tour_id: 'tour' } }),
  item('last'),
]

describe('a quota for v0', () => {
  it('for one product leaves out the events of that product, and the remaining events keep their order', async t => {
    const server = await startCaptureServer(t, {
      quotas: { exceptions: 0, surveyResponses: 9 },
      usedUp: new Set(['survey_responses']),
    })
    assert.deepEqual(await answerOf(server.post('/batch/', batch(mixed))), ok)
    assert.deepEqual(await namesKept(server), ['first', '$ai_generation', 'survey sent', 'last'])
    assert.deepEqual(
      [...server.refused],
      [
        ['exceptions_over_quota', 1],
        ['survey_responses_over_quota', 1],
      ],
    )
    const accepted = (await server.metrics.eventsAccepted.get()).values.filter(({ value }) => value > 0)
    assert.deepEqual(
      accepted.map(({ labels, value }) => [labels.lane, value]),
      [
        ['main', 3],
        ['ai', 1],
      ],
    )
  })

  it('that leaves out everything answers 200 on every path, even to a beacon', async t => {
    const server = await startCaptureServer(t, { quotas: { events: 0 } })
    const body = JSON.stringify({ api_key: testToken, ...item('e') })
    for (const path of ['/capture/', '/e/?beacon=1', '/i/v0/e', '/track', '/batch', '/i/v0/ai/batch'])
      assert.deepEqual(await answerOf(server.post(path, body)), ok, path)
    assert.deepEqual(await server.records(), { events: [], rejects: [] })
    assert.deepEqual([...server.refused], [['events_over_quota', 6]])
    const both = batch([item('e'), item('$exception')])
    assert.equal((await server.post('/e/?beacon=1', both)).status, 204, 'something is kept')
  })

  it('is applied before events are validated', async t => {
    const server = await startCaptureServer(t, { quotas: { events: 0 } })
    const nameless = item('')
    assert.deepEqual(await answerOf(server.post('/batch/', batch([nameless, { event: 'no id' }]))), ok)
    assert.deepEqual(await answerOf(server.post('/batch/', batch([nameless, item('$exception')]))), ok)
    assert.deepEqual(await namesKept(server), ['$exception'])
    const badException = { event: '$exception', properties: {} }
    assert.equal((await server.post('/batch/', batch([item('e'), badException]))).status, 400)
    assert.deepEqual(Object.fromEntries(server.refused), { events_over_quota: 3, missing_distinct_id: 1 })
    assert.equal((await server.records()).rejects.at(-1)?.field, 'batch.1.distinct_id')
    const imported = batch([item('e'), { event: 'no id' }], { historical_migration: true })
    assert.equal((await server.post('/batch/', imported)).status, 400, 'no quota, so it is looked at')
  })

  it('is applied before events are validated in a decode thread too', async t => {
    const server = await startCaptureServer(t, { quotas: { events: 0 } })
    const large = (...events: object[]) => batch([...events, item('large', { properties: { a: 'x'.repeat(900_000) } })])
    const padding = item('padding', { properties: { a: 'x'.repeat(900_000) } })
    assert.deepEqual(await answerOf(server.post('/batch/', large(item(''), item('$exception'), padding))), ok)
    assert.deepEqual(await namesKept(server), ['$exception'])
    assert.deepEqual([...server.refused], [['events_over_quota', 3]])
    const bad = await server.post('/batch/', large(item('e'), { event: '$exception', properties: {} }, padding))
    const { code, attr } = (await bad.json()) as { code: string; attr: string }
    assert.deepEqual([bad.status, code, attr], [400, 'missing_distinct_id', 'batch.1.distinct_id'])
    assert.deepEqual(await namesKept(server), ['$exception'])
    const [reject] = (await server.records()).rejects
    assert.deepEqual([reject?.field, reject?.source?.kind], ['batch.1.distinct_id', 'request'])
    const rerouting = await startCaptureServer(t, { quotas: { events: 0 }, rerouteOlderThanDays: 1 })
    assert.equal((await rerouting.post('/batch/', large(item(''), padding))).status, 400, 'it might be an import')
    assert.equal((await rerouting.post('/batch/', batch([item('')]))).status, 400)
  })

  it('never affects imports, or live events rerouted as imports by age', async t => {
    const quotas = { events: 0, exceptions: 0, llmEvents: 0, surveyResponses: 0 }
    const server = await startCaptureServer(t, { quotas, rerouteOlderThanDays: 1 })
    assert.deepEqual(await answerOf(server.post('/batch/', batch(mixed, { historical_migration: true }))), ok)
    const old = item('old', { timestamp: '2025-06-01T00:00:00Z' })
    assert.deepEqual(await answerOf(server.post('/batch/', batch([item('young'), old]))), ok)
    const { events } = await server.records()
    assert.equal(events.length, mixed.length + 1)
    assert.ok(events.every(({ historicalMigration }) => historicalMigration))
    assert.ok(events.some(({ name }) => name === 'old'))
    assert.deepEqual([...server.refused], [['events_over_quota', 1]])
  })

  it('that is not used up drops nothing', async t => {
    const server = await startCaptureServer(t, {
      quotas: { events: 5, exceptions: 5, llmEvents: 5, surveyResponses: 5 },
    })
    assert.deepEqual(await answerOf(server.post('/batch/', batch(mixed))), ok)
    assert.equal((await namesKept(server)).length, mixed.length)
    assert.deepEqual([...server.refused], [])
  })
})

describe('a quota for v1', () => {
  const post = (server: Server, events: readonly object[], over: object = {}) =>
    fetch(`${server.url}/i/v1/analytics/events`, { method: 'POST', headers: v1Headers, body: v1Batch(events, over) })
  const resultsOf = async (response: Response) => {
    const { results } = (await response.json()) as { results: Record<string, { result: string; details?: string }> }
    return Object.values(results).map(({ result, details }) => [result, details])
  }

  it('for one product drops its events, each with its reason', async t => {
    const server = await startCaptureServer(t, { quotas: { llmEvents: 0, surveyResponses: 0, exceptions: 0 } })
    const events = [
      v1Event(1),
      v1Event(2, { event: '$ai_span' }),
      v1Event(3, { event: 'survey shown' }),
      v1Event(4, { event: 'survey shown', options: { product_tour_id: 'tour' } }),
      v1Event(5, { event: '$exception' }),
      v1Event(6, { event: '' }),
    ]
    assert.deepEqual(await resultsOf(await post(server, events)), [
      ['ok', undefined],
      ['drop', 'llm_events_over_quota'],
      ['drop', 'survey_responses_over_quota'],
      ['ok', undefined],
      ['drop', 'exceptions_over_quota'],
      ['drop', 'missing_event_name'],
    ])
    assert.deepEqual(await namesKept(server), ['$pageview', 'survey shown'])
    assert.deepEqual(Object.fromEntries(server.refused), {
      llm_events_over_quota: 1,
      survey_responses_over_quota: 1,
      exceptions_over_quota: 1,
    })
  })

  it('answers 402 when it leaves no event, whether it limits one product or all live events', async t => {
    const scoped = await startCaptureServer(t, { quotas: { exceptions: 0 } })
    const emptied = await post(scoped, [v1Event(1, { event: '$exception' }), v1Event(2, { event: '' })])
    assert.deepEqual(
      [emptied.status, ((await emptied.json()) as { error: string }).error],
      [402, 'billing_limit_exceeded'],
    )
    const refused = { exceptions_over_quota: 1, missing_event_name: 1 }
    assert.deepEqual(
      [await scoped.records(), Object.fromEntries(scoped.refused)],
      [{ events: [], rejects: [] }, refused],
    )

    const server = await startCaptureServer(t, { quotas: { events: 0 }, rerouteOlderThanDays: 1 })
    const events = [v1Event(1), v1Event(2, { event: '$ai_span' })]
    assert.equal((await post(server, events)).status, 402)
    assert.deepEqual(await namesKept(server), [])
    assert.equal((await post(server, events, { historical_migration: true })).status, 200)
    assert.equal((await namesKept(server)).length, 2)
    const old = v1Event(3, { timestamp: '2025-06-01T00:00:00Z' })
    assert.deepEqual(await resultsOf(await post(server, [v1Event(1), old])), [
      ['drop', 'events_over_quota'],
      ['ok', undefined],
    ])
    assert.deepEqual([...server.refused], [['events_over_quota', 3]])
  })

  it('is not applied in import-only mode, which drops each live event', async t => {
    const server = await startCaptureServer(t, { importOnly: true, quotas: { events: 0 } })
    assert.deepEqual(await resultsOf(await post(server, [v1Event(1), v1Event(2, { event: '' })])), [
      ['drop', 'non_historical_import_drop'],
      ['drop', 'non_historical_import_drop'],
    ])
    assert.deepEqual([...server.refused], [['non_historical_import_drop', 2]])
  })
})

describe('import-only mode', () => {
  it('discards requests that are not historical migrations, whatever their content, and accepts those that are', async t => {
    const server = await startCaptureServer(t, { importOnly: true })
    assert.deepEqual(await answerOf(server.post('/batch/', batch([item('live'), item('')]))), ok)
    assert.deepEqual(
      await answerOf(server.post('/e/?beacon=1', JSON.stringify({ api_key: testToken, ...item('e') }))),
      ok,
    )
    const large = Array.from({ length: 3_000 }, () => item('live'))
    assert.deepEqual(await answerOf(server.post('/batch/', batch(large))), ok)
    assert.deepEqual([...server.refused], [['non_historical_import_drop', 3_003]])
    assert.deepEqual(await answerOf(server.post('/batch/', batch([item('past')], { historical_migration: true }))), ok)
    assert.deepEqual(await namesKept(server), ['past'])
  })

  it('still rejects unknown keys and invalid requests', async t => {
    const server = await startCaptureServer(t, { importOnly: true })
    assert.equal((await server.post('/batch/', batch([item('e')], { api_key: 'phc_other' }))).status, 401)
    assert.equal((await server.post('/batch/', '{')).status, 400)
    assert.equal((await server.post('/batch/', batch([{ ...item('e'), uuid: 5 }]))).status, 400)
    assert.equal((await server.post('/e/', JSON.stringify({ api_key: testToken, distinct_id: 'd' }))).status, 400)
    assert.equal((await sendV1(server, v1Batch([v1Event(1, { uuid: 'x' })]))).status, 400)
    const { events, rejects } = await server.records()
    assert.deepEqual([events.length, [...server.refused]], [0, []])
    const reasons = fieldOf(rejects, 'reason')
    assert.deepEqual(reasons, ['invalid_shape', 'missing_event_name', 'invalid_event_uuid'])
  })
})
