// A project with rejects in its store, and replays of them through capture itself into a memory log.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { createMemoryEventLog } from '#adapters/memory/memory-event-log.ts'
import { quotaOf } from '#core/capture/quota-resource.ts'
import { type CapturedEvent, logLanes } from '#core/events/captured-event.ts'
import type { RejectedEvent } from '#core/events/stored-event.ts'
import { rejectOfReject } from '#core/processing/rejects.ts'
import { noQuotas } from '#core/project.ts'
import { PortError } from '#ports/port-error.ts'
import { type CaptureDependencies, createCaptureService } from '#services/capture/capture.ts'
import { createCaptureRehearsal } from '#services/capture/capture-rehearsal.ts'
import { createRejectReplay } from '#services/capture/replay-rejects.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { decodeReject } from '#wire/rejects/decode-reject.ts'
import { startCaptureServer, testProject } from './capture-server.ts'
import { eventually } from './eventually.ts'
import { fixedClock } from './fixed-clock.ts'
import { startManagement } from './management-api.ts'
import { MemoryRejects } from './memory-rejects.ts'

export const rejectsPath = '/api/projects/1/rejected_events/'
/** When rejects are replayed, and when they were received. */
export const nowMs = Date.parse('2025-07-03T12:00:00Z')
export const receivedAtMs = Date.parse('2025-07-01T11:00:00Z')

export async function startReplayWorld(
  t: TestContext,
  rejected: readonly RejectedEvent[],
  rerouteOlderThanMs: number | null = null,
) {
  const store = new MemoryRejects()
  await store.insert({ events: [], pendingEvents: [], overrides: [], replays: [], rejected })
  const clock = fixedClock(new Date(nowMs).toISOString())
  const log = createMemoryEventLog({ nowMs: clock.nowMs })
  const world = { logIsDown: false, quotas: noQuotas }
  const dependencies: CaptureDependencies = {
    findProject: token =>
      token === 'phc_first' ? { ...testProject, apiToken: 'phc_first', quotas: world.quotas } : null,
    unknownKeys: 'reject',
    importOnly: false,
    isOverQuota: ({ quotas }, resource) => quotaOf(quotas, resource) === 0,
    refused: { count: () => undefined },
    eventLog: {
      ...log,
      append: (lane, records) =>
        world.logIsDown ? Promise.reject(new PortError('event-log', 'full')) : log.append(lane, records),
    },
    clock,
    metrics: createMetrics(),
    logger: silentLogger(),
  }
  const rejects = createRejectReplay({
    events: store,
    capture: createCaptureService(dependencies),
    rehearsal: createCaptureRehearsal(dependencies),
    decode: decodeReject,
    clock,
    rerouteOlderThanMs,
    logger: silentLogger(),
  })
  const api = await startManagement(t, { events: { listRejected: query => store.listRejected(query) }, rejects })
  return Object.assign(world, {
    api,
    list: async (query = '') => (await api.call('GET', `${rejectsPath}${query}`)).body,
    replay: (body: object) => api.call('POST', `${rejectsPath}replay/`, { body }),
    async appended(): Promise<CapturedEvent[]> {
      const chunks = await Promise.all(logLanes.map(lane => log.read(lane, 0, { recordCountMax: 1e6, bytesMax: 1e9 })))
      const records = chunks.flatMap(chunk => chunk.records)
      assert.ok(records.every(({ kind }) => kind === 'event'))
      return records.flatMap(record => (record.kind === 'event' ? [record.event] : []))
    },
  })
}

/** What the reject store has after these requests were refused at the edge. */
export async function refusedRequests(
  t: TestContext,
  sent: readonly (readonly [path: string, body: unknown, headers?: Record<string, string>])[],
) {
  const edge = await startCaptureServer(t, { now: new Date(receivedAtMs).toISOString() })
  for (const [address, body, headers = {}] of sent)
    await edge.post(address, JSON.stringify(body), { 'x-forwarded-for': '203.0.113.9', ...headers })
  const rejects = await eventually(async () => {
    const kept = (await edge.records()).rejects
    return kept.length >= sent.length ? kept : undefined
  })
  return rejects.map((reject, offset) => rejectOfReject(offset, reject))
}
