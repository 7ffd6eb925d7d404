import type { TestContext } from 'node:test'
import { type CaptureOverrides, composeCapture } from '#compose/front/capture.ts'
import type { FrontParts } from '#compose/front/parts.ts'
import { type QuotaResource, quotaOf } from '#core/capture/quota-resource.ts'
import type { CapturedEvent, CapturedReject } from '#core/events/captured-event.ts'
import { compileProject } from '#core/flags/evaluation/compile-project.ts'
import { noQuotas, type Project, type Quotas } from '#core/project.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import { createProjectBacklog, type ProjectBacklog } from '#services/capture/project-backlog.ts'
import { fixedClock } from './fixed-clock.ts'
import { serveParts, testContext, testDecodePool, testParts } from './front-parts.ts'
import { createMemoryEventLog } from './memory/memory-event-log.ts'
import { aProject, emptyDefinitions } from './values.ts'

export const testToken = 'phc_test0000000000000000000000000000000000001'

export const testProject: Project = aProject({
  uuid: '0197c5a0-0000-7000-8000-0000000000ff',
  name: 'Test',
  apiToken: testToken,
  createdAtMs: 0,
})

export interface CaptureServerOptions {
  /** Epoch ms, or a timestamp text. */
  readonly now?: number | string
  readonly unknownKeys?: 'reject' | 'accept'
  readonly importOnly?: boolean
  readonly quotas?: Partial<Quotas>
  readonly project?: Partial<Project>
  readonly geoip?: FrontParts['geoip']
  readonly salts?: Pick<FrontParts['salts'], 'knownSalt' | 'saltOf'>
  /** Exhausted quotas, in addition to those that are 0. */
  readonly usedUp?: ReadonlySet<QuotaResource>
  /** Replaces the look-up of the one project. */
  readonly findProject?: FrontParts['definitions']['findProject']
  /** Wraps the memory log, for example to make it fail. */
  readonly wrapLog?: (log: EventLogAppender) => EventLogAppender
  readonly threadEntry?: URL
  /** Used instead of real threads. */
  readonly decodeThreads?: FrontParts['decodeThreads']
  readonly rerouteOlderThanDays?: number
  readonly hotKeyEventsPerMinute?: number
  readonly backlogOf?: CaptureOverrides['backlogOf']
  readonly keepRefusedRecording?: CaptureOverrides['keepRefusedRecording']
  /** How far the worker has processed a kind of traffic; by default it never reports. */
  readonly processedUntil?: FrontParts['host']['processedUntil']
  /** Queries of stored events and rejects; a request that needs a missing one fails. */
  readonly eventStore?: Partial<FrontParts['stores']['eventStore']>
  /** Settings that differ from their defaults, by environment variable. */
  readonly settings?: Readonly<Record<string, string>>
}

/** The backlog of one of several projects, none of whose events the worker processes. */
export function backlogOf(unitsMax: number): ProjectBacklog {
  return createProjectBacklog({
    processedUntil: () => ({ appendedBeforeMs: 0, deferred: null }),
    isProcessing: () => true,
    hasOtherProjects: () => true,
    clock: { nowMs: () => 1_000 },
    unitsMax,
  })
}

export type CaptureServer = Awaited<ReturnType<typeof startCaptureServer>>

/** Starts the capture feature over a memory log, with one project and a fixed clock. */
export async function startCaptureServer(t: Pick<TestContext, 'after'>, options: CaptureServerOptions = {}) {
  const clock = fixedClock(options.now ?? '2025-07-01T11:00:00Z')
  const log = createMemoryEventLog({ nowMs: clock.nowMs })
  const context = testContext({ clock, settings: settingsOf(options), geoip: options.geoip ?? null })
  const { metrics } = context
  const project = { ...testProject, ...options.project, quotas: { ...noQuotas, ...options.quotas } }
  const compiled = compileProject(emptyDefinitions(project, 1))
  const refused = new Map<string, number>()
  const warnings: Record<string, unknown>[] = []
  const opened = new AsyncDisposableStack()
  const findProject = options.findProject ?? (token => (token === project.apiToken ? compiled : null))
  const overrides = { ...(options.threadEntry && { entry: options.threadEntry }) }
  const threads = options.decodeThreads ?? testDecodePool(context, opened, { findProject, overrides })
  let jobsDone = 0
  const jobsAhead = new Map<string, number>()
  const given = testParts(context, opened, {
    definitions: { findProject },
    counters: {
      eventQuotas: {
        isOverQuota: ({ quotas }, resource) =>
          quotaOf(quotas, resource) === 0 || options.usedUp?.has(resource) === true,
      },
      refused: {
        count(projectId, type, count, details) {
          if (count > 0) refused.set(type, (refused.get(type) ?? 0) + count)
          warnings.push({ projectId, type, count, ...details?.() })
        },
      },
    },
    eventLog: options.wrapLog?.(log) ?? log,
    ...(options.salts && { salts: options.salts }),
    stores: { ...(options.eventStore && { eventStore: options.eventStore }) },
    decodeThreads: {
      run: (kind, job, ...rest) => {
        const doneBefore = jobsDone
        const answered = threads.run(kind, job, ...rest)
        const note = () => {
          if ('ip' in job) jobsAhead.set(job.ip, jobsDone - doneBefore)
          jobsDone++
        }
        answered.then(note, () => undefined)
        return answered
      },
    },
  })
  const { processedUntil, backlogOf, keepRefusedRecording } = options
  const parts = { ...given, host: { ...given.host, ...(processedUntil && { processedUntil }) } }
  const { routes, rejects } = composeCapture(parts, {
    ...(backlogOf && { backlogOf }),
    ...(keepRefusedRecording && { keepRefusedRecording }),
  })
  const { url } = await serveParts(t, parts, routes, opened)
  return {
    url,
    clock,
    metrics,
    log,
    rejects,
    /** The number of received events that were not appended to the log, by reason. */
    refused,
    /** The warnings for projects, call by call. */
    warnings,
    /** By client address: how many jobs a decode thread answered while the last job of that address waited. */
    jobsAhead,
    /** Events and rejects of all streams, in order. */
    async records(): Promise<{ events: CapturedEvent[]; rejects: CapturedReject[] }> {
      const events: CapturedEvent[] = []
      const rejects: CapturedReject[] = []
      for (const { stream } of await log.listStreams()) {
        const chunk = await log.read(stream, 0, { recordCountMax: 1e9, bytesMax: 1e9 })
        for (const { record } of chunk.records) {
          if (record.kind === 'event') events.push(record.event)
          if (record.kind === 'reject') rejects.push(record.reject)
        }
      }
      return { events, rejects }
    },
    post(path: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
      const type = { 'content-type': 'application/json' }
      return fetch(url + path, { method: 'POST', body, headers: { ...type, ...headers } })
    },
  }
}

function settingsOf(options: CaptureServerOptions): Record<string, string> {
  const { unknownKeys, importOnly, rerouteOlderThanDays, hotKeyEventsPerMinute } = options
  return {
    ...(unknownKeys !== undefined && { PENNON_UNKNOWN_KEYS: unknownKeys }),
    ...(importOnly !== undefined && { PENNON_IMPORT_ONLY: String(importOnly) }),
    ...(rerouteOlderThanDays !== undefined && { PENNON_REROUTE_OLDER_THAN_DAYS: String(rerouteOlderThanDays) }),
    ...(hotKeyEventsPerMinute !== undefined && { PENNON_HOT_KEY_EVENTS_PER_MINUTE: String(hotKeyEventsPerMinute) }),
    ...options.settings,
  }
}
