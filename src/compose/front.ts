// A front: HTTP over the services, and the adapters behind their ports. Started by `commands/`, with the worker's part in
// `worker.ts`; the two share the stores of `stores.ts`.

import { randomBytes, randomFillSync, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDecodeThreads, decodeThreadDefaults } from '#adapters/decode-threads/decode-threads.ts'
import { openInstalledScripts } from '#adapters/posthog-js/installed-scripts.ts'
import { pooledRandomUint32 } from '#core/capture/event-uuid.ts'
import type { LogLane } from '#core/events/captured-event.ts'
import { type CompiledProject, compileProjectSteps } from '#core/flags/evaluation/compile-project.ts'
import type { Project } from '#core/project.ts'
import { captureRoutes } from '#http/handlers/capture.ts'
import { captureV1Routes } from '#http/handlers/capture-v1.ts'
import { changeStreamRoutes } from '#http/handlers/change-stream.ts'
import { decideRoutes } from '#http/handlers/decide.ts'
import { flagDefinitionsRoutes } from '#http/handlers/flag-definitions.ts'
import { healthRoutes, metricsRoute } from '#http/handlers/health.ts'
import { ofrepRoutes } from '#http/handlers/ofrep.ts'
import { remoteConfigRoutes } from '#http/handlers/remote-config.ts'
import { remoteConfigPayloadRoutes } from '#http/handlers/remote-config-payload.ts'
import { replayRoutes } from '#http/handlers/replay.ts'
import { startPageRoute } from '#http/handlers/start-page.ts'
import { staticScriptsRoutes } from '#http/handlers/static-scripts.ts'
import { surveysAndFeaturesRoutes } from '#http/handlers/surveys-and-features.ts'
import { createAddressBase } from '#http/management/kit/address-base.ts'
import { createAuthorizer } from '#http/management/kit/authenticate.ts'
import { openApiRoutes } from '#http/management/kit/openapi.ts'
import { managementRoutes } from '#http/management/management-routes.ts'
import { closeServer, createHttpServer } from '#http/server.ts'
import type { Route } from '#http/shared/route.ts'
import { createStateAwayNote } from '#http/shared/state-away.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import type { Geoip } from '#ports/geoip.ts'
import { startEventQuotas } from '#services/capture/event-quotas.ts'
import { startRefusedCounter } from '#services/capture/refused-counter.ts'
import { createChangeHub } from '#services/flags/change-hub.ts'
import { createDecideService } from '#services/flags/decide.ts'
import { startDefinitionCache } from '#services/flags/definition-cache.ts'
import { startFlagRequestCounter } from '#services/flags/flag-request-counter.ts'
import { createPersonalKeyCheck } from '#services/manage/personal-key-check.ts'
import { startPersonalKeyUses } from '#services/manage/personal-key-uses.ts'
import { startMissingEvents } from '#services/processing/missing-events.ts'
import { inSlices } from '#services/shared/in-slices.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { MetricsSnapshot } from '#telemetry/process-numbers.ts'
import { parseTrustedProxies, type TrustedProxies } from '#wire/address/trusted-proxies.ts'
import {
  type DecodeJob,
  type DecodeOutcome,
  decodePool,
  decodeThreadEntry,
  isUrgentDecodeJob,
  senderOfDecodeJob,
} from '#wire/threads/decode-thread.ts'
import type { Config } from '../config.ts'
import { coalesceNudges } from '../processes/coalesced-nudges.ts'
import type { ProcessingState } from '../processes/messages.ts'
import { version } from '../version.ts'
import { composeCapture } from './capture.ts'
import { composeEdges } from './edge.ts'
import { openFrontLog } from './front-log.ts'
import { composeHealth } from './health.ts'
import { composeLiveEvents } from './live-events.ts'
import { openFrontState, openManagement, type StateWriter } from './state.ts'
import { openEventStore, openLogReader, openPayloadCipher } from './stores.ts'

/** Uses of personal keys are written this long after the first of them, when their requests have been answered. */
const keyUsesDelayMs = 1_000
/** A front learns of other fronts' requests within twice this time, so quotas are right within 10 s. */
const flagRequestFlushMs = 5_000
/** The worker counts every 10 s: quotas of events take effect within 20 s. */
const eventQuotaReadMs = 5_000
const refusedFlushMs = 5_000
/** The worker looks for missing rows every 10 s. */
const missingEventsReadMs = 5_000
/** All change streams of a front take some 100 MB when they are open, and one project leaves room for others. */
const changeStreamLimits = { readersMax: 10_000, readersPerProjectMax: 5_000, heartbeatMs: 20_000 }
/** How long a stop waits for what is counted in memory: a database that hangs may cost these numbers, but not the stop. */
const lastFlushMsMax = 1_500

/** Whoever supervises the worker of a front: the same process, or its parent. */
export interface FrontHost {
  /** Tells the worker that a lane has something new. Cheap and repeatable. */
  nudge(lane: LogLane): void
  processingState(): ProcessingState
  /** Whether nobody can reach the embedded event store; false where the event store is elsewhere. */
  isEventStoreAway(): boolean
  /** Everything in the lane that was appended before this time (epoch ms) is processed; null or absent when unknown. */
  processedUntilMs?(lane: LogLane): number | null
  /** Latest numbers of the other processes. @param own what is shown beside them. */
  otherMetrics(own: MetricsSnapshot): Promise<readonly MetricsSnapshot[]>
}

/** What tests put in the place of an adapter. */
export interface FrontOverrides {
  readonly eventLog?: EventLogWriter
}

/** What a process that is nothing but a front does when all is loaded and no request waits yet. */
export interface FrontStart {
  readonly beforeListening?: () => void
}

export interface FrontOptions extends FrontOverrides, FrontStart {
  readonly config: Config
  readonly clock: Clock
  /** Null when there is no database of locations, so that evaluations see none. */
  readonly geoip: Geoip | null
  readonly logger: Logger
  readonly metrics: Metrics
  readonly host: FrontHost
  /** Handed over when whoever starts the front has it open already. */
  readonly management?: StateWriter
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
  const state = await openFrontState(config, { logger, metrics }, management)
  const keyUses = startPersonalKeyUses({ management, clock, logger, metrics, delayMs: keyUsesDelayMs })
  const keyCheck = createPersonalKeyCheck({ management, clock, uses: keyUses })
  const noteStateAway = createStateAwayNote(logger, () => performance.now())
  const changes = createChangeHub({
    ...changeStreamLimits,
    metrics,
    monotonicNowMs: () => performance.now(),
    startTimer: startNodeInterval,
  })
  const logReader = openLogReader(config)
  const liveEvents = composeLiveEvents({ log: logReader, nowMs: clock.nowMs, metrics, logger })
  const flagRequests = startFlagRequestCounter({ usage: management, clock, logger, flushMs: flagRequestFlushMs })
  const missingEvents = startMissingEvents({ marks: management, logger, readMs: missingEventsReadMs })
  const eventQuotas = startEventQuotas({ usage: management, clock, logger, readMs: eventQuotaReadMs })
  const refused = startRefusedCounter({ store: management, clock, logger, flushMs: refusedFlushMs })
  const definitions = await startDefinitionCache({
    store: state.definitions,
    onRevision: served => {
      keyCheck.forget()
      changes.publish(served)
      liveEvents.recheck()
    },
    logger,
    pollMs: state.definitionPollMs,
    compile: async (changed, previous: CompiledProject | null) => {
      flagRequests.follow(changed.project)
      eventQuotas.follow(changed.project)
      const compiled = await inSlices(compileProjectSteps(changed, previous))
      for (const problem of compiled.problems)
        logger.warn({ projectId: changed.project.id, ...problem }, 'a stored flag cannot be evaluated')
      return compiled
    },
  })
  await Promise.all([flagRequests.caughtUp(), eventQuotas.caughtUp()])
  const payloadCipher = openPayloadCipher(config)
  const eventStore = openEventStore(config, clock)
  const nudge = coalesceNudges(lane => {
    host.nudge(lane)
    liveEvents.wake(lane)
  })
  const { eventLog, ownLog } = await openFrontLog({
    ...{ config, clock, logger, metrics, positions: management, nudge },
    eventLog: options.eventLog,
  })
  const decodeThreads = createDecodeThreads<DecodeJob, DecodeOutcome>({
    entry: decodeThreadEntry,
    isUrgent: isUrgentDecodeJob,
    senderOf: job => senderOfDecodeJob(job, token => definitions.findByToken(token)?.project.id ?? null),
    ...decodeThreadDefaults,
    logger,
    onRestart: () => metrics.childRestarts.inc({ process: 'decode thread' }),
  })

  const decide = createDecideService({
    findProject: token => definitions.findByToken(token),
    subjects: state.subjects,
    hashKeys: { findHashKeys: state.subjects.findHashKeys, keepHashKey: management.keepHashKey },
    writesAtOnceMax: state.loginWritesAtOnceMax,
    geoip: options.geoip,
    isOverFlagQuota: flagRequests.isOverQuota,
    countFlagRequest: flagRequests.count,
    metrics,
    logger,
  })
  const trustedProxies = trustedProxiesOf(config)
  const { capture, replay, rejects, rerouteOlderThanMs } = composeCapture({
    ...{ config, clock, host, definitions, eventQuotas, refused, eventLog, eventStore, metrics, logger },
  })
  const isOverRecordingQuota = (project: Project) => eventQuotas.isOverQuota(project, 'recordings')
  const captureParts = {
    service: capture,
    decodeThreads: decodePool(decodeThreads),
    trustedProxies,
    clock,
    rerouteOlderThanMs,
  }
  const healthDeps = composeHealth({ config, definitions, state, ownLog, logReader, missingEvents, metrics, host })
  const serverKeys = {
    keyCheck,
    findProject: (token: string) => definitions.findByToken(token),
    findBySecretHash: (secretHash: string) => definitions.findBySecretHash(secretHash),
    noteStateAway,
  }
  const scripts = openInstalledScripts()
  const wireRoutes = [
    ...decideRoutes({
      decide,
      decodeThreads: decodePool(decodeThreads),
      trustedProxies,
      clock,
      isOverRecordingQuota,
      newUuid: randomUUID,
    }),
    ...ofrepRoutes({
      decide,
      clock,
      changes,
      findProject: token => definitions.findByToken(token),
      lookForChanges: definitions.lookForChanges,
    }),
    ...changeStreamRoutes({ findProject: token => definitions.findByToken(token), changes }),
    ...captureRoutes({ ...captureParts, random: pooledRandomUint32(randomFillSync) }),
    ...captureV1Routes(captureParts),
    ...replayRoutes({
      replay,
      keepRefused: capture.keepRefused,
      decodeThreads: decodePool(decodeThreads),
      trustedProxies,
      clock,
      random: pooledRandomUint32(randomFillSync),
    }),
    ...flagDefinitionsRoutes({ ...serverKeys, isOverFlagQuota: flagRequests.isOverQuota }),
    ...remoteConfigPayloadRoutes({
      ...serverKeys,
      findProjectById: projectId => definitions.findById(projectId),
      management,
      cipher: payloadCipher,
      logger,
    }),
    ...remoteConfigRoutes({
      findProject: token => definitions.findByToken(token),
      scripts,
      isOverRecordingQuota,
      clock,
    }),
    ...surveysAndFeaturesRoutes({ findProject: token => definitions.findByToken(token) }),
    ...staticScriptsRoutes(scripts),
    ...healthRoutes(healthDeps),
    startPageRoute({ version, serves: config.adminPort === null ? 'all' : 'wire' }),
  ]
  const api = managementRoutes({
    addressBase: createAddressBase(config.publicUrl, trustedProxies),
    management,
    events: eventStore,
    rejects,
    logStatus: (lane, offset) => logReader.status(lane, offset),
    logLosses: () => logReader.losses(),
    definitionsReady: async revision => {
      await definitions.catchUp(revision)
      await flagRequests.caughtUp()
    },
    servedProject: projectId => definitions.findById(projectId),
    decide,
    liveEvents,
    payloadCipher,
    keyCheck,
    clock,
    newUuid: randomUUID,
    randomBytes,
    noteStateAway,
    logger,
  })
  const metricsTexts = metricsRoute(healthDeps)
  const otherRoutes = [...wireRoutes, metricsTexts]
  const privateRoutes = [...api, ...openApiRoutes({ version, managementRoutes: api, otherRoutes }), metricsTexts]
  const authorize = createAuthorizer({ keyCheck, noteStateAway, operatorsNeedKey: config.metricsRequireKey })
  const hasAdminPort = config.adminPort !== null
  const publicRoutes = hasAdminPort ? wireRoutes : [...wireRoutes, ...privateRoutes]
  const { publicEdge, adminEdge } = composeEdges({
    ...{ hasAdminPort, logger, metrics },
    monotonicNowMs: () => performance.now(),
  })
  const publicServer = createHttpServer({ routes: publicRoutes, logger, metrics, authorize, ...publicEdge })
  const adminServer = hasAdminPort
    ? createHttpServer({
        routes: [...privateRoutes, ...healthRoutes(healthDeps), startPageRoute({ version, serves: 'private_api' })],
        logger,
        metrics,
        authorize,
        ...adminEdge,
      })
    : null

  return {
    routes: publicRoutes,
    listen: async () => {
      options.beforeListening?.()
      const url = await publicServer.listen({ host: config.host, port: config.port })
      const adminUrl =
        adminServer === null ? null : await adminServer.listen({ host: config.host, port: config.adminPort! })
      return { url, adminUrl }
    },
    close: async () => {
      // Both would hold the server until it cuts them.
      changes.close()
      const liveEventsClosed = liveEvents.close()
      await Promise.all([closeServer(publicServer), adminServer && closeServer(adminServer), liveEventsClosed])
      definitions.close()
      // First what clients were told is kept.
      await Promise.all([ownLog?.close(), decodeThreads.close()])
      await flushLast()
      await Promise.all([logReader.close(), eventStore.close(), state.close(), management.close()])
    },
  }

  async function flushLast(): Promise<void> {
    const late = sleep(lastFlushMsMax, 'late', { ref: false })
    const counted = [flagRequests.close(), keyUses.close(), refused.close(), eventQuotas.close(), missingEvents.close()]
    if ((await Promise.race([Promise.all(counted), late])) === 'late')
      logger.warn(
        'the last flag requests, refused events and uses of personal keys could not be written down before the stop',
      )
  }
}

function startNodeInterval(callback: () => void, everyMs: number): { cancel(): void } {
  const timer = setInterval(callback, everyMs)
  timer.unref()
  return { cancel: () => clearInterval(timer) }
}

function trustedProxiesOf(config: Config): TrustedProxies {
  const parsed = parseTrustedProxies(config.trustedProxies.join(','))
  if (!parsed.ok) throw new Error(`PENNON_TRUSTED_PROXIES: ${parsed.error}`)
  return parsed.value
}
