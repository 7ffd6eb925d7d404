import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { IncomingEvent, IncomingRequest } from '#core/capture/incoming-event.ts'
import { prepareEvents } from '#core/capture/prepare-events.ts'
import { type EncodedRecords, sealRecords } from '#core/log/record-codec.ts'
import { decodeRecords } from '#core/log/record-decoder.ts'
import { noQuotas, type Project } from '#core/project.ts'
import { PortError } from '#ports/port-error.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { type CaptureDependencies, createCaptureService } from './capture.ts'
import { createRejectLimiter } from './reject-limiter.ts'

const project = { id: 7, apiToken: 'phc_x', quotas: noQuotas } as Project
const received = { receivedAtMs: 1_000_000, ip: '', random: () => 0 }
const noBody = () => 'the body'

function anItem(over: Partial<IncomingEvent> = {}): IncomingEvent {
  return {
    name: 'e',
    distinctId: 'ada',
    uuid: null,
    timestamp: null,
    offsetMs: null,
    ignoreSentAt: false,
    cookielessModeInvalid: false,
    captureInternal: false,
    propertiesJson: '{}',
    setJson: null,
    setOnceJson: null,
    ...over,
  }
}

function aRequest(over: Partial<IncomingRequest> = {}): IncomingRequest {
  return {
    token: 'phc_x',
    historicalMigration: false,
    sentAtMs: null,
    events: [anItem()],
    sourceJson: () => '{}',
    placeOf: index => `batch.${index}.`,
    ...over,
  }
}

function start(over: Partial<CaptureDependencies> = {}) {
  const appended: { lane: string; records: EncodedRecords }[] = []
  const metrics = createMetrics()
  const refused: { reason: string; count: number }[] = []
  const service = createCaptureService({
    findProject: token => (token === project.apiToken ? project : null),
    unknownKeys: 'reject',
    importOnly: false,
    isOverQuota: () => false,
    refused: { count: (_projectId, reason, count) => void (count > 0 && refused.push({ reason, count })) },
    eventLog: {
      append: async (lane, records) => void appended.push({ lane, records }),
      close: async () => {},
    },
    clock: { nowMs: () => received.receivedAtMs },
    metrics,
    logger: silentLogger(),
    ...over,
  })
  const decoded = () =>
    appended.flatMap(({ lane, records }) => decodeRecords(sealed(records)).map(record => ({ lane, record })))
  return { service, appended, decoded, metrics, refused }
}

/** As the log's writer does it. */
function sealed({ bytes }: EncodedRecords): Uint8Array {
  sealRecords(bytes)
  return bytes
}

function failingLog(error: unknown): Partial<CaptureDependencies> {
  return { eventLog: { append: () => Promise.reject(error), close: async () => {} } }
}

describe('capture service', () => {
  it('appends the events of a request as one unit per log', async () => {
    const { service, appended, metrics } = start()
    const events = [anItem(), anItem({ name: '$exception' }), anItem({ name: '$$heatmap' })]
    assert.deepEqual(await service.capture(aRequest({ events }), received, noBody), {
      kind: 'accepted',
      rejects: [],
      rejectedCount: 0,
      overQuota: { count: 0, events: [], marks: new Uint8Array(0) },
      quotaLeftNothing: false,
    })
    assert.deepEqual(
      appended.map(({ lane, records }) => [lane, records.recordCount]),
      [['main', 3]],
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
  it('waits for a project that has to be looked up', async () => {
    const { service, appended } = start({ findProject: async () => project })
    assert.equal((await service.capture(aRequest(), received, noBody)).kind, 'accepted')
    assert.equal(appended.length, 1)
  })
  it('stores nothing for an unknown key, whichever way it answers', async () => {
    for (const [unknownKeys, kind] of [
      ['reject', 'unknown_project'],
      ['accept', 'accepted'],
    ] as const) {
      const { service, appended, metrics } = start({ unknownKeys })
      assert.equal((await service.capture(aRequest({ token: 'phc_other' }), received, noBody)).kind, kind)
      assert.equal(appended.length, 0)
      assert.deepEqual(
        (await metrics.eventsRefused.get()).values.map(({ labels, value }) => [labels.reason, value]),
        [['unknown_api_key', 1]],
      )
    }
  })
  it('writes the project into events that were prepared for none', async () => {
    const { service, decoded } = start()
    const request = aRequest({
      historicalMigration: true,
      events: [anItem(), anItem({ name: '$exception' }), anItem({ timestamp: 'x' })],
    })
    const outcome = prepareEvents(request, 0, received)
    await service.capturePrepared({ token: 'phc_x', historicalMigration: true, eventCount: 3, outcome }, 0, '')
    const found = decoded().map(({ lane, record }) => {
      if (record.kind === 'event') return [lane, 'event', record.event.projectId]
      return [lane, record.kind, record.kind === 'reject' ? record.reject.projectId : null]
    })
    assert.deepEqual(found, [
      ['main', 'event', 7],
      ['historical', 'event', 7],
      ['historical', 'reject', 7],
    ])
  })
  it('asks to come back when the log or the projects cannot be reached, and counts why', async () => {
    const causes: Partial<CaptureDependencies>[] = [
      failingLog(new PortError('event-log', 'full')),
      failingLog(new PortError('event-log', 'unavailable')),
      failingLog(new PortError('event-log', 'timeout')),
      { findProject: () => Promise.reject(new PortError('definition-store', 'unavailable')) },
      {
        findProject: () => {
          throw new PortError('definition-store', 'timeout')
        },
      },
    ]
    for (const cause of causes) {
      const { service, metrics } = start(cause)
      const outcome = await service.capture(aRequest(), received, noBody)
      assert.ok(outcome.kind === 'unavailable')
      assert.equal(outcome.isProjectUnknown === true, cause.findProject !== undefined)
      assert.equal((await metrics.dependencyFailures.get()).values.length, 1)
      assert.equal(
        (await metrics.eventsAccepted.get()).values.reduce((sum, { value }) => sum + value, 0),
        0,
      )
    }
  })
  it('lets broken assumptions pass', async () => {
    const { service } = start(failingLog(new RangeError('broken')))
    await assert.rejects(service.capture(aRequest(), received, noBody), RangeError)
  })
  it('keeps a refused request as it was sent, and asks for its text only then', async () => {
    const { service, decoded } = start()
    let asked = 0
    const body = () => {
      asked++
      return 'the body'
    }
    await service.capture(aRequest(), received, body)
    assert.equal(asked, 0)
    const refused = await service.capture(aRequest({ events: [anItem(), anItem({ name: '' })] }), received, body)
    assert.deepEqual(refused, { kind: 'refused', refusal: 'missing_event_name', index: 1, field: 'batch.1.event' })
    const { record } = decoded()[1]!
    assert.ok(record.kind === 'reject')
    assert.deepEqual(
      [record.reject.body, record.reject.field, record.reject.projectId],
      ['the body', 'batch.1.event', 7],
    )
  })
  it('refuses all the same when the refused request cannot be kept', async () => {
    const { service, metrics } = start(failingLog(new PortError('event-log', 'full')))
    const refused = await service.capture(aRequest({ events: [anItem({ name: '' })] }), received, noBody)
    assert.equal(refused.kind, 'refused')
    service.keepRefused({ token: 'phc_x', reason: 'invalid_shape', field: '', body: '' }, 0)
    await new Promise(setImmediate)
    assert.equal((await metrics.dependencyFailures.get()).values[0]?.value, 2)
  })
  it('only counts what names no known key', async () => {
    const { service, appended, metrics } = start()
    service.keepRefused({ token: null, reason: 'invalid_json', field: '', body: '' }, 0)
    service.keepRefused({ token: 'phc_other', reason: 'invalid_json', field: '', body: '' }, 0)
    await new Promise(setImmediate)
    assert.equal(appended.length, 0)
    assert.equal((await metrics.eventsRefused.get()).values[0]?.value, 2)
  })
})

describe('reject limiter', () => {
  it('grants a hundred per project and second', () => {
    const limiter = createRejectLimiter()
    assert.equal(limiter.take(1, 60, 0), 60)
    assert.equal(limiter.take(1, 60, 999), 40)
    assert.equal(limiter.take(1, 1, 999), 0)
    assert.equal(limiter.take(2, 1, 999), 1)
    assert.equal(limiter.take(1, 1, 1_000), 1)
  })
})
