// Composes the part of a front that accepts events, session recordings and replayed rejects. All three share the log, the
// quotas and each project's limit on records that wait in the log.

import { HotKeys } from '#core/capture/hot-keys.ts'
import type { Traffic } from '#core/events/log-stream.ts'
import { dayMs } from '#core/time.ts'
import { captureRoutes } from '#http/handlers/capture.ts'
import { captureV1Routes } from '#http/handlers/capture-v1.ts'
import { otlpRoutes } from '#http/handlers/otlp.ts'
import { recordingRoutes } from '#http/handlers/recordings.ts'
import type { Route } from '#http/shared/route.ts'
import { createVisitorAnonymizer } from '#services/capture/anonymize-visitors.ts'
import {
  type CaptureOptions,
  type CaptureService,
  createCaptureService,
  createDryRunCaptureService,
} from '#services/capture/capture.ts'
import { createRecordingService } from '#services/capture/capture-recordings.ts'
import { createOtlpService } from '#services/capture/otlp-service.ts'
import { createProjectBacklog, type ProjectBacklog, projectBacklogUnitsMax } from '#services/capture/project-backlog.ts'
import { createRejectReplayer, type RejectReplay } from '#services/capture/replay-rejects.ts'
import { createImportRateLimiter } from '#services/imports/import-pace.ts'
import { createOpenJobCache } from '#services/imports/open-jobs.ts'
import { decodeReject } from '#wire/rejects/decode-reject.ts'
import type { CaptureParts } from './parts.ts'

/** For tests. */
export interface CaptureOverrides {
  /** How many records of each kind of traffic a project may have waiting in the log. */
  readonly backlogOf?: (traffic: Traffic) => ProjectBacklog
  /** Called with a refused recording. */
  readonly keepRefusedRecording?: CaptureService['keepRefused']
}

export function composeCapture(
  parts: CaptureParts,
  over: CaptureOverrides = {},
): { rejects: RejectReplay; routes: readonly Route[] } {
  const { config, clock, random, monotonicNowMs, trustedProxies, decodeThreads, eventLog, metrics, logger } = parts
  const { definitions, counters, stores } = parts
  const backlogOf = over.backlogOf ?? (traffic => composeBacklog(parts, traffic))
  const backlog = backlogOf('live')
  const shared = {
    findProject: (token: string) => definitions.findProject(token)?.project ?? null,
    unknownKeys: config.unknownKeys,
    isOverQuota: counters.eventQuotas.isOverQuota,
    refused: counters.refused,
    eventLog,
    backlog,
    metrics,
    logger,
  }
  const importBacklog = backlogOf('import')
  const pace = createImportRateLimiter({
    processedUntil: () => parts.host.processedUntil?.('import') ?? null,
    isBelowShare: importBacklog.isBelowShare,
    clock,
  })
  const captureOptions: CaptureOptions = {
    ...shared,
    importBacklog: {
      ...importBacklog,
      settle: (projectId, units, isStored) => {
        importBacklog.settle(projectId, units, isStored)
        if (isStored) pace.noteStored()
      },
    },
    importOnly: config.importOnly,
    ...(config.hotKeyEventsPerMinute !== null && {
      hotKeys: new HotKeys({ eventsPerMinute: config.hotKeyEventsPerMinute }),
    }),
    visitors: createVisitorAnonymizer(parts),
    clock,
  }
  const capture = createCaptureService(captureOptions)
  const keepRefused = over.keepRefusedRecording ?? capture.keepRefused
  const recording = createRecordingService({ ...shared, keepRefused, monotonicNowMs })
  const rerouteOlderThanMs = config.rerouteOlderThanDays === null ? null : config.rerouteOlderThanDays * dayMs
  const rejects = createRejectReplayer({
    events: stores.eventStore,
    rehearsal: createDryRunCaptureService(captureOptions),
    decode: decodeReject,
    ...{ capture, clock, rerouteOlderThanMs, logger },
  })
  const imports = {
    findProject: shared.findProject,
    openJobs: createOpenJobCache({ jobs: stores.management, clock }),
    pace,
    events: stores.eventStore,
  }
  const forRoutes = { decodeThreads, trustedProxies, clock, random }
  const routes = [
    ...captureRoutes({ ...forRoutes, service: capture, rerouteOlderThanMs, imports }),
    ...captureV1Routes({ ...forRoutes, service: capture, rerouteOlderThanMs }),
    ...recordingRoutes({ ...forRoutes, recording, keepRefused }),
    ...otlpRoutes({ ...forRoutes, otlp: createOtlpService(shared) }),
  ]
  return { rejects, routes }
}

function composeBacklog({ config, clock, host, definitions }: CaptureParts, traffic: Traffic): ProjectBacklog {
  return createProjectBacklog({
    processedUntil: () => host.processedUntil?.(traffic) ?? null,
    isProcessing: () => host.processingState() === 'ok',
    hasOtherProjects: () => definitions.projectCount() > 1,
    clock,
    unitsMax: projectBacklogUnitsMax[traffic] / config.frontProcesses,
    isShared: traffic === 'import',
  })
}
