// How a front takes what clients send: events, session recordings, and rejected requests that are tried once more. The
// three share the log, the quotas and each project's bound on what waits in the log.

import { HotKeys } from '#core/capture/hot-keys.ts'
import type { LogLane } from '#core/events/captured-event.ts'
import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import { dayMs } from '#core/time.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import type { EventStore } from '#ports/event-store.ts'
import { type CaptureDependencies, type CaptureService, createCaptureService } from '#services/capture/capture.ts'
import { createCaptureRehearsal } from '#services/capture/capture-rehearsal.ts'
import { createReplayService, type ReplayService } from '#services/capture/capture-replay.ts'
import type { EventQuotas } from '#services/capture/event-quotas.ts'
import { createProjectBacklog, projectBacklogUnitsMax } from '#services/capture/project-backlog.ts'
import type { RefusedCounter } from '#services/capture/refused-counter.ts'
import { createRejectReplay, type RejectReplay } from '#services/capture/replay-rejects.ts'
import type { DefinitionCache } from '#services/flags/definition-cache.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { decodeReject } from '#wire/rejects/decode-reject.ts'
import type { Config } from '../config.ts'

export interface CaptureParts {
  readonly capture: CaptureService
  readonly replay: ReplayService
  readonly rejects: RejectReplay
  /** Live events at least this old take the historical lane; null when none do. */
  readonly rerouteOlderThanMs: number | null
}

export function composeCapture(deps: {
  readonly config: Config
  readonly clock: Clock
  readonly host: { processedUntilMs?(lane: LogLane): number | null; processingState(): string }
  readonly definitions: DefinitionCache<CompiledProject>
  readonly eventQuotas: EventQuotas
  readonly refused: RefusedCounter
  readonly eventLog: EventLogWriter
  readonly eventStore: EventStore
  readonly metrics: Metrics
  readonly logger: Logger
}): CaptureParts {
  const { config, clock, host, definitions, eventQuotas, refused, eventLog, eventStore, metrics, logger } = deps
  const backlogOf = (lane: LogLane) =>
    createProjectBacklog({
      processedUntilMs: () => host.processedUntilMs?.(lane) ?? null,
      isProcessing: () => host.processingState() === 'ok',
      hasOtherProjects: () => definitions.projectCount() > 1,
      clock,
      unitsMax: projectBacklogUnitsMax[lane] / config.frontProcesses,
    })
  const backlog = backlogOf('main')
  const shared = {
    findProject: (token: string) => definitions.findByToken(token)?.project ?? null,
    unknownKeys: config.unknownKeys,
    isOverQuota: eventQuotas.isOverQuota,
    ...{ refused, eventLog, backlog, metrics, logger },
  }
  const captureDependencies: CaptureDependencies = {
    ...shared,
    importBacklog: backlogOf('historical'),
    importOnly: config.importOnly,
    ...(config.hotKeyEventsPerMinute !== null && {
      hotKeys: new HotKeys({ eventsPerMinute: config.hotKeyEventsPerMinute }),
    }),
    clock,
  }
  const capture = createCaptureService(captureDependencies)
  const replay = createReplayService({
    ...shared,
    keepRefused: capture.keepRefused,
    monotonicNowMs: () => performance.now(),
  })
  const rerouteOlderThanMs = config.rerouteOlderThanDays === null ? null : config.rerouteOlderThanDays * dayMs
  const rejects = createRejectReplay({
    events: eventStore,
    rehearsal: createCaptureRehearsal(captureDependencies),
    decode: decodeReject,
    ...{ capture, clock, rerouteOlderThanMs, logger },
  })
  return { capture, replay, rejects, rerouteOlderThanMs }
}
