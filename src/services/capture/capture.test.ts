import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { rowCountOf } from '#core/capture/outcome-table.ts'
import type { EncodedRecords } from '#core/log/record-codec.ts'
import { noIngestionSettings, noQuotas, type Project } from '#core/project.ts'
import { PortError } from '#ports/port-error.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import {
  anIncomingEvent as anItem,
  aPreparedRequest as aRequest,
  decoded as recordsOf,
} from '../../../tests/support/incoming-requests.ts'
import { createVisitorAnonymizer } from './anonymize-visitors.ts'
import { type CaptureOptions, createCaptureService } from './capture.ts'
import { createRejectLimiter } from './record-rejects.ts'

const project = { id: 7, apiToken: 'phc_x', quotas: noQuotas } as Project
const receivedAtMs = 1_000_000
const readNothing = () => null

function start(over: Partial<CaptureOptions> = {}) {
  const appended: { traffic: string; records: EncodedRecords }[] = []
  const metrics = createMetrics()
  const refused: { reason: string; count: number }[] = []
  const service = createCaptureService({
    findProject: token => (token === project.apiToken ? project : null),
    unknownKeys: 'reject',
    importOnly: false,
    isOverQuota: () => false,
    refused: { count: (_projectId, reason, count) => void (count > 0 && refused.push({ reason, count })) },
    visitors: { settlerOf: () => () => null, hide: async () => undefined },
    eventLog: {
      append: async (traffic, records) => void appended.push({ traffic, records }),
    },
    clock: { nowMs: () => receivedAtMs },
    metrics,
    logger: createSilentLogger(),
    ...over,
  })
  const decoded = () =>
    appended.flatMap(({ traffic, records }) => recordsOf(records).map(record => ({ traffic, record })))
  return { service, appended, decoded, metrics, refused }
}

function failingLog(error: unknown): Partial<CaptureOptions> {
  return { eventLog: { append: () => Promise.reject(error) } }
}

describe('capture service', () => {
  it('appends the events of a request as one unit per log', async () => {
    const { service, appended, metrics } = start()
    const events = [anItem(), anItem({ name: '$exception' }), anItem({ name: '$$heatmap' })]
    assert.deepEqual(await service.capture(aRequest(events), receivedAtMs, rowCountOf), { kind: 'stored', answer: 3 })
    assert.deepEqual(
      appended.map(({ traffic, records }) => [traffic, records.recordCount]),
      [['live', 3]],
    )
    const counted = (await metrics.eventsAccepted.get()).values.filter(({ value }) => value > 0)
    assert.deepEqual(
      counted.map(({ labels, value }) => [labels.lane, value]),
      [
        ['main', 1],
        ['error_tracking', 1],
        ['heatmaps', 1],
      ],
    )
  })
  it('stores nothing for an unknown key, whether it answers with success or with an error', async () => {
    for (const [unknownKeys, kind] of [
      ['reject', 'unknown_project'],
      ['accept', 'stored'],
    ] as const) {
      const { service, appended, metrics } = start({ unknownKeys })
      assert.equal(
        (await service.capture(aRequest([anItem()], { token: 'phc_other' }), receivedAtMs, readNothing)).kind,
        kind,
      )
      assert.equal(appended.length, 0)
      assert.deepEqual(
        (await metrics.eventsRefused.get()).values.map(({ labels, value }) => [labels.reason, value]),
        [['unknown_api_key', 1]],
      )
    }
  })
  it('frees the memory of a request that stores nothing', async () => {
    const large = Array.from({ length: 100 }, () => anItem())
    for (const [options, request] of [
      [{}, aRequest(large, { token: 'phc_other' })],
      [{ unknownKeys: 'accept' }, aRequest(large, { token: 'phc_other' })],
      [{}, aRequest([...large, anItem({ distinctId: '' })])],
      [{ importOnly: true }, aRequest(large)],
    ] as const) {
      const { buffer } = request.table.live!.bytes
      await start(options).service.capture(request, receivedAtMs, readNothing)
      assert.ok(buffer.detached)
    }
  })
  it('stores the original text of a refused request', async () => {
    const { service, decoded } = start()
    await service.capture(aRequest(), receivedAtMs, readNothing)
    const refused = await service.capture(aRequest([anItem(), anItem({ name: '' })]), receivedAtMs, readNothing)
    assert.deepEqual(refused, { kind: 'refused', refusal: 'missing_event_name', index: 1, field: 'batch.1.event' })
    const { record } = decoded()[1]!
    assert.ok(record.kind === 'reject')
    assert.deepEqual(
      [record.reject.body, record.reject.field, record.reject.projectId],
      ['the body', 'batch.1.event', 7],
    )
  })
  it('still refuses a request that cannot be stored as a reject', async () => {
    const { service, metrics } = start(failingLog(new PortError('event-log', 'full')))
    const refused = await service.capture(aRequest([anItem({ name: '' })]), receivedAtMs, readNothing)
    assert.equal(refused.kind, 'refused')
    service.keepRefused({ token: 'phc_x', reason: 'invalid_shape', field: '', body: '' }, 0)
    await new Promise(setImmediate)
    assert.equal((await metrics.dependencyFailures.get()).values[0]?.value, 2)
  })
  it('only counts requests whose key is missing or unknown', async () => {
    const { service, appended, metrics } = start()
    service.keepRefused({ token: null, reason: 'invalid_json', field: '', body: '' }, 0)
    service.keepRefused({ token: 'phc_other', reason: 'invalid_json', field: '', body: '' }, 0)
    await new Promise(setImmediate)
    assert.equal(appended.length, 0)
    assert.equal((await metrics.eventsRefused.get()).values[0]?.value, 2)
  })
})

describe('reject limiter', () => {
  it('grants a hundred rejects per project and second', () => {
    const take = createRejectLimiter()
    assert.equal(take(1, 60, 0), 60)
    assert.equal(take(1, 60, 999), 40)
    assert.equal(take(1, 1, 999), 0)
    assert.equal(take(2, 1, 999), 1)
    assert.equal(take(1, 1, 1_000), 1)
  })

  it('reports the first of several dropped cookieless events, with its missing property', async () => {
    const counted: object[] = []
    const salt = Buffer.alloc(16)
    const visitors = createVisitorAnonymizer({ salts: { knownSalt: () => salt, saltOf: () => salt }, geoip: null })
    const ingestion = { ...noIngestionSettings, cookielessMode: 1 as const }
    const { service } = start({
      findProject: () => ({ ...project, timezone: 'UTC', ingestion }),
      refused: {
        count: (_projectId, reason, count, warning) => void counted.push({ reason, count, ...warning?.() }),
      },
      visitors,
    })
    const lacking = {
      isCookieless: true,
      distinctId: '$posthog_cookieless',
      propertiesJson: '{"$cookieless_mode":true}',
    }
    const events = [anItem({ ...lacking, name: 'n'.repeat(200), uuid: '0197c5a0-0000-7000-8000-000000000001' })]
    const more = [anItem(lacking), anItem({ ...lacking, name: '$create_alias' })]
    await service.capture(aRequest([...events, ...more]), receivedAtMs, readNothing)
    const [missing, alias] = counted as Record<string, unknown>[]
    assert.deepEqual(missing, {
      ...{ reason: 'cookieless_missing_user_agent', count: 2, missingProperty: '$raw_user_agent' },
      ...{
        eventUuid: '0197c5a0-0000-7000-8000-000000000001',
        event: 'n'.repeat(200),
        distinctId: '$posthog_cookieless',
      },
    })
    assert.deepEqual(
      [alias!.reason, alias!.count, 'missingProperty' in alias!],
      ['cookieless_unsupported_event', 1, false],
    )
  })
})
