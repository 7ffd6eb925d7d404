// A project with rejects in its store, which can be replayed through the real capture code into a memory log.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { CapturedEvent } from '#core/events/captured-event.ts'
import type { RejectedEvent } from '#core/events/stored-event.ts'
import { compileProject } from '#core/flags/evaluation/compile-project.ts'
import { createRejectFromLogRecord } from '#core/processing/rejects/rejects.ts'
import { noQuotas } from '#core/project.ts'
import { PortError } from '#ports/port-error.ts'
import { type CaptureServerOptions, startCaptureServer, testProject } from '../support/capture-server.ts'
import { eventually } from '../support/eventually.ts'
import { startManagement } from '../support/management-api.ts'
import { MemoryRejectStore } from '../support/memory/memory-reject-store.ts'
import { emptyDefinitions } from '../support/values.ts'

export const rejectsPath = '/api/projects/1/rejected_events/'
/** When rejects are replayed. */
export const nowMs = Date.parse('2025-07-03T12:00:00Z')
export const receivedAtMs = Date.parse('2025-07-01T11:00:00Z')

export async function startReplayWorld(
  t: TestContext,
  rejected: readonly RejectedEvent[],
  options: Pick<CaptureServerOptions, 'rerouteOlderThanDays'> = {},
) {
  const store = new MemoryRejectStore()
  await store.insert({ events: [], pendingEvents: [], overrides: [], recordings: [], rejected })
  const world = { logIsDown: false, quotas: noQuotas }
  const { rejects, records } = await startCaptureServer(t, {
    ...options,
    now: nowMs,
    eventStore: store,
    findProject: token => {
      const project = { ...testProject, apiToken: 'phc_first', quotas: world.quotas }
      return token === project.apiToken ? compileProject(emptyDefinitions(project, 1)) : null
    },
    wrapLog: log => ({
      ...log,
      append: (traffic, appended) =>
        world.logIsDown ? Promise.reject(new PortError('event-log', 'full')) : log.append(traffic, appended),
    }),
  })
  const api = await startManagement(t, { events: { listRejected: query => store.listRejected(query) }, rejects })
  return Object.assign(world, {
    api,
    list: async (query = '') => (await api.call('GET', `${rejectsPath}${query}`)).body,
    replay: (body: object) => api.call('POST', `${rejectsPath}replay/`, { body }),
    async appended(): Promise<readonly CapturedEvent[]> {
      const { events, rejects: again } = await records()
      assert.deepEqual(again, [])
      return events
    },
  })
}

/** Sends requests that the edge refuses, and returns what the reject store then has. */
export async function refusedRequests(
  t: TestContext,
  sent: readonly (readonly [path: string, body: unknown, headers?: Record<string, string>])[],
) {
  const edge = await startCaptureServer(t, { now: receivedAtMs })
  for (const [address, body, headers = {}] of sent)
    await edge.post(address, JSON.stringify(body), { 'x-forwarded-for': '203.0.113.9', ...headers })
  const rejects = await eventually(async () => {
    const kept = (await edge.records()).rejects
    return kept.length >= sent.length ? kept : undefined
  })
  return rejects.map((reject, offset) => createRejectFromLogRecord({ stream: 'main', offset }, reject))
}
