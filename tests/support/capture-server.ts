import { randomFillSync } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { createDecodeThreads, decodeThreadDefaults } from '#adapters/decode-threads/decode-threads.ts'
import { createMemoryEventLog } from '#adapters/memory/memory-event-log.ts'
import { pooledRandomUint32 } from '#core/capture/event-uuid.ts'
import { HotKeys } from '#core/capture/hot-keys.ts'
import { type QuotaResource, quotaOf } from '#core/capture/quota-resource.ts'
import { type CapturedEvent, type CapturedReject, logLanes } from '#core/events/captured-event.ts'
import { noIngestionSettings, noQuotas, type Project, type Quotas } from '#core/project.ts'
import { captureRoutes } from '#http/handlers/capture.ts'
import { captureV1Routes } from '#http/handlers/capture-v1.ts'
import { createHttpServer } from '#http/server.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import { createCaptureService } from '#services/capture/capture.ts'
import type { ProjectBacklog } from '#services/capture/project-backlog.ts'
import { silentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { parseTrustedProxies } from '#wire/address/trusted-proxies.ts'
import {
  type DecodeJob,
  type DecodeOutcome,
  decodePool,
  decodeThreadEntry,
  isUrgentDecodeJob,
  senderOfDecodeJob,
} from '#wire/threads/decode-thread.ts'
import { endServer } from './end-server.ts'
import { fixedClock } from './fixed-clock.ts'

export const testToken = 'phc_test0000000000000000000000000000000000001'

export const testProject: Project = {
  id: 1,
  uuid: '0197c5a0-0000-7000-8000-0000000000ff',
  name: 'Test',
  apiToken: testToken,
  timezone: 'UTC',
  anonymizeIps: false,
  geoipEnabled: true,
  propertyMatchingVersion: 2,
  quotas: noQuotas,
  clientSettings: {},
  ingestion: noIngestionSettings,
  createdAtMs: 0,
}

export interface CaptureServerOptions {
  readonly now?: string
  readonly unknownKeys?: 'reject' | 'accept'
  readonly importOnly?: boolean
  readonly quotas?: Partial<Quotas>
  /** Quotas that are used up, besides those that are 0. */
  readonly usedUp?: ReadonlySet<QuotaResource>
  /** Instead of the one project. */
  readonly findProject?: () => Promise<Project | null>
  /** Stands before the memory log, to make it fail. */
  readonly wrapLog?: (log: EventLogWriter) => EventLogWriter
  readonly threadEntry?: URL
  readonly rerouteOlderThanDays?: number
  readonly hotKeyEventsPerMinute?: number
  readonly backlog?: ProjectBacklog
  readonly importBacklog?: ProjectBacklog
}

export type CaptureServer = Awaited<ReturnType<typeof startCaptureServer>>

/** The capture endpoints over a real server and a memory log, with one project and a clock that stands still. */
export async function startCaptureServer(t: Pick<TestContext, 'after'>, options: CaptureServerOptions = {}) {
  const clock = fixedClock(options.now ?? '2025-07-01T11:00:00Z')
  const log = createMemoryEventLog({ nowMs: clock.nowMs })
  const metrics = createMetrics()
  const logger = silentLogger()
  const decodeThreads = createDecodeThreads<DecodeJob, DecodeOutcome>({
    ...decodeThreadDefaults,
    entry: options.threadEntry ?? decodeThreadEntry,
    isUrgent: isUrgentDecodeJob,
    senderOf: job => senderOfDecodeJob(job, token => (token === testToken ? testProject.id : null)),
    logger,
    onRestart: () => metrics.childRestarts.inc({ process: 'decode-thread' }),
  })
  const trustedProxies = parseTrustedProxies('loopback,private')
  if (!trustedProxies.ok) throw new Error(trustedProxies.error)
  const project = { ...testProject, quotas: { ...noQuotas, ...options.quotas } }
  const refused = new Map<string, number>()
  const service = createCaptureService({
    findProject: options.findProject ?? (token => (token === testToken ? project : null)),
    unknownKeys: options.unknownKeys ?? 'reject',
    importOnly: options.importOnly ?? false,
    isOverQuota: ({ quotas }, resource) => quotaOf(quotas, resource) === 0 || options.usedUp?.has(resource) === true,
    refused: {
      count: (_projectId, reason, count) => void (count > 0 && refused.set(reason, (refused.get(reason) ?? 0) + count)),
    },
    ...(options.hotKeyEventsPerMinute !== undefined && {
      hotKeys: new HotKeys({ eventsPerMinute: options.hotKeyEventsPerMinute }),
    }),
    eventLog: options.wrapLog?.(log) ?? log,
    ...(options.backlog !== undefined && { backlog: options.backlog }),
    ...(options.importBacklog !== undefined && { importBacklog: options.importBacklog }),
    clock,
    metrics,
    logger,
  })
  const parts = {
    service,
    decodeThreads: decodePool(decodeThreads),
    trustedProxies: trustedProxies.value,
    clock,
    rerouteOlderThanMs: options.rerouteOlderThanDays === undefined ? null : options.rerouteOlderThanDays * 86_400_000,
  }
  const server = createHttpServer({
    routes: [...captureRoutes({ ...parts, random: pooledRandomUint32(randomFillSync) }), ...captureV1Routes(parts)],
    logger,
    metrics,
    authorize: async () => false,
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  const { port } = server.server.address() as AddressInfo
  t.after(async () => {
    await endServer(server)
    await decodeThreads.close()
  })
  return {
    url: `http://127.0.0.1:${port}`,
    clock,
    metrics,
    /** What arrived and is in neither log, by reason. */
    refused,
    /** Events and rejects of both logs, in order. */
    async records(): Promise<{ events: CapturedEvent[]; rejects: CapturedReject[] }> {
      const events: CapturedEvent[] = []
      const rejects: CapturedReject[] = []
      for (const lane of logLanes) {
        const chunk = await log.read(lane, 0, { recordCountMax: 1e9, bytesMax: 1e9 })
        for (const record of chunk.records) {
          if (record.kind === 'event') events.push(record.event)
          if (record.kind === 'reject') rejects.push(record.reject)
        }
      }
      return { events, rejects }
    },
    post(path: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
      const type = { 'content-type': 'application/json' }
      return fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body, headers: { ...type, ...headers } })
    },
  }
}
