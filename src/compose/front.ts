// A front: HTTP over the services, and the adapters behind their ports. Started by `commands/`, with the worker's part in
// `worker.ts`; the two share the stores of `stores.ts`.

import { randomBytes, randomFillSync, randomUUID } from 'node:crypto'
import { createDecodeThreads, decodeThreadDefaults } from '#adapters/decode-threads/decode-threads.ts'
import { openSqliteDefinitionStore } from '#adapters/sqlite/sqlite-definition-store.ts'
import { openSqliteSubjectStore } from '#adapters/sqlite/sqlite-subject-store.ts'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import { openSqliteLogWriter, type SqliteLogWriter } from '#adapters/sqlite-log/sqlite-log-writer.ts'
import { type LogLane, logLanes } from '#core/events/captured-event.ts'
import { pooledRandomUint32 } from '#core/events/event-uuid.ts'
import { compileProject } from '#core/flags/compile-project.ts'
import { captureRoutes } from '#http/handlers/capture.ts'
import { decideRoutes } from '#http/handlers/decide.ts'
import { healthRoutes, metricsRoute } from '#http/handlers/health.ts'
import { createAuthorizer } from '#http/management/authenticate.ts'
import { managementRoutes } from '#http/management/management-routes.ts'
import { openApiRoutes } from '#http/management/openapi.ts'
import type { Route } from '#http/route.ts'
import { closeServer, createHttpServer } from '#http/server.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import type { ManagementStore } from '#ports/management-store.ts'
import { createCaptureService } from '#services/capture.ts'
import { createDecideService } from '#services/decide.ts'
import { startDefinitionCache } from '#services/definition-cache.ts'
import { startFlagRequestCounter } from '#services/flag-request-counter.ts'
import { createPersonalKeyCheck } from '#services/personal-key-check.ts'
import type { Logger } from '#telemetry/log.ts'
import { aggregateMetrics, type Metrics } from '#telemetry/metrics.ts'
import type { PreparedCapture } from '#wire/decode-capture.ts'
import { type DecodeJob, decodeThreadEntry } from '#wire/decode-thread.ts'
import { parseTrustedProxies, type TrustedProxies } from '#wire/trusted-proxies.ts'
import type { Config } from '../config.ts'
import { coalesceNudges } from '../processes/coalesced-nudges.ts'
import type { MetricsSnapshot } from '../processes/messages.ts'
import { version } from '../version.ts'
import { openManagement } from './start.ts'
import { logFolder, openEventStore } from './stores.ts'

/** How often a process asks whether definitions changed elsewhere: others follow a write within a second. */
const definitionPollMs = 200
const flagRequestFlushMs = 10_000

/** Whoever supervises the worker of a front: the same process, or its parent. */
export interface FrontHost {
  /** Tells the worker that a lane has something new. Cheap and repeatable. */
  nudge(lane: LogLane): void
  processingState(): string
  /** Latest numbers of the other processes. */
  otherMetrics(): Promise<readonly MetricsSnapshot[]>
}

/** What tests put in the place of an adapter. */
export interface FrontOverrides {
  readonly eventLog?: EventLogWriter
}

export interface FrontOptions extends FrontOverrides {
  readonly config: Config
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
  readonly host: FrontHost
  /** Handed over when whoever starts the front has it open already. */
  readonly management?: ManagementStore
}

export interface Front {
  /** The whole route table of the public port, for the test that walks it. */
  readonly routes: readonly Route[]
  /** @throws the error of `listen`, with its code. */
  listen(): Promise<{ url: string; adminUrl: string | null }>
  /** Stops accepting, finishes requests, writes what is queued. */
  close(): Promise<void>
}

export async function composeFront(options: FrontOptions): Promise<Front> {
  const { config, clock, logger, metrics, host } = options
  const management = options.management ?? (await openManagement(config, logger))
  const subjects = openSqliteSubjectStore({ dataFolder: config.dataFolder })
  const definitionStore = openSqliteDefinitionStore({ dataFolder: config.dataFolder })
  const definitions = await startDefinitionCache({
    store: definitionStore,
    logger,
    pollMs: definitionPollMs,
    compile: changed => {
      const compiled = compileProject(changed)
      for (const problem of compiled.problems)
        logger.warn({ projectId: changed.project.id, ...problem }, 'a stored flag cannot be evaluated')
      return compiled
    },
  })
  const eventStore = openEventStore(config, clock)
  const logReader = openSqliteLogReader({ folder: logFolder(config) })
  const nudge = coalesceNudges(lane => host.nudge(lane))
  const ownLog = options.eventLog === undefined ? await openOwnLog(config, clock, logger, metrics, nudge) : null
  const eventLog = ownLog ?? nudgingLog(options.eventLog!, nudge)
  const decodeThreads = createDecodeThreads<DecodeJob, PreparedCapture>({
    entry: decodeThreadEntry,
    ...decodeThreadDefaults,
    logger,
    onRestart: () => metrics.childRestarts.inc({ process: 'decode thread' }),
  })
  const flagRequests = startFlagRequestCounter({ usage: management, clock, logger, flushMs: flagRequestFlushMs })
  const keyCheck = createPersonalKeyCheck({ management, clock })

  const decide = createDecideService({
    findProject: token => definitions.findByToken(token),
    subjects,
    countFlagRequest: flagRequests.count,
    metrics,
    logger,
  })
  const capture = createCaptureService({
    findProject: token => definitions.findByToken(token)?.project ?? null,
    unknownKeys: config.unknownKeys,
    eventLog,
    clock,
    metrics,
    logger,
  })
  const healthDeps = {
    readiness: () => ({
      flags: definitions.isServing() ? 'ok' : 'definitions_not_loaded',
      capture: ownLog === null ? 'ok' : captureState(ownLog.condition()),
      processing: host.processingState(),
    }),
    metricsText: async () =>
      aggregateMetrics([await metrics.registry.getMetricsAsJSON(), ...(await host.otherMetrics())]),
  }
  const wireRoutes = [
    ...decideRoutes({ decide, clock, newUuid: randomUUID }),
    ...captureRoutes({
      service: capture,
      decodeThreads,
      trustedProxies: trustedProxiesOf(config),
      clock,
      random: pooledRandomUint32(randomFillSync),
    }),
    ...healthRoutes(healthDeps),
  ]
  const api = managementRoutes({
    management,
    events: eventStore,
    logStatus: (lane, offset) => logReader.status(lane, offset),
    definitionsReady: revision => definitions.catchUp(revision),
    keyCheck,
    clock,
    newUuid: randomUUID,
    randomBytes,
    logger,
  })
  const privateRoutes = [
    ...api,
    ...openApiRoutes({ version, managementRoutes: api, otherRoutes: wireRoutes }),
    metricsRoute(healthDeps),
  ]
  const authorize = createAuthorizer({ keyCheck, logger })
  const hasAdminPort = config.adminPort !== null
  const publicRoutes = hasAdminPort ? wireRoutes : [...wireRoutes, ...privateRoutes]
  const publicServer = createHttpServer({ routes: publicRoutes, logger, metrics, authorize })
  const adminServer = hasAdminPort
    ? createHttpServer({ routes: [...privateRoutes, ...healthRoutes(healthDeps)], logger, metrics, authorize })
    : null

  return {
    routes: publicRoutes,
    listen: async () => {
      const url = await publicServer.listen({ host: config.host, port: config.port })
      const adminUrl =
        adminServer === null ? null : await adminServer.listen({ host: config.host, port: config.adminPort! })
      return { url, adminUrl }
    },
    close: async () => {
      await Promise.all([closeServer(publicServer), adminServer && closeServer(adminServer)])
      await flagRequests.close()
      definitions.close()
      await decodeThreads.close()
      await ownLog?.close()
      await Promise.all([logReader.close(), eventStore.close(), definitionStore.close(), management.close()])
      subjects.close()
    },
  }
}

/** @param nudge told of each durable commit. */
async function openOwnLog(
  config: Config,
  clock: Clock,
  logger: Logger,
  metrics: Metrics,
  nudge: (lane: LogLane) => void,
): Promise<SqliteLogWriter> {
  const log = await openSqliteLogWriter({
    folder: logFolder(config),
    nowMs: clock.nowMs,
    logBytesMax: config.logBytesMax,
    minFreeBytes: config.freeBytesMin,
    logger,
    onSynced: ({ lane }) => nudge(lane),
  })
  metrics.onCollect(() => {
    for (const lane of logLanes) metrics.logQueueRecords.set({ lane }, log.waitingRecords(lane))
  })
  return log
}

/** A log from outside, which tells nobody of its commits. */
function nudgingLog(log: EventLogWriter, nudge: (lane: LogLane) => void): EventLogWriter {
  return {
    append: async (lane, records) => {
      await log.append(lane, records)
      nudge(lane)
    },
    close: () => log.close(),
  }
}

/** What readiness says: a code, not the adapter's word. */
function captureState(condition: 'ok' | 'full' | 'unavailable'): string {
  return condition === 'full' ? 'log_or_disk_full' : condition === 'unavailable' ? 'log_unavailable' : 'ok'
}

function trustedProxiesOf(config: Config): TrustedProxies {
  const parsed = parseTrustedProxies(config.trustedProxies.join(','))
  if (!parsed.ok) throw new Error(`PENNON_TRUSTED_PROXIES: ${parsed.error}`)
  return parsed.value
}
