// Accepts replay requests: finds the project, asks for its quota, appends the record to the log and answers only when the
// log has it. Knows nothing of HTTP; `http/handlers/replay.ts` turns outcomes into answers.

import { type ReplayRefusal, type ReplayRequest, refusedReplayFields } from '#core/capture/prepare-replay.ts'
import type { QuotaResource } from '#core/capture/quota-resource.ts'
import { assignProject } from '#core/log/record-codec.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { atOnce } from '#core/maybe-steps.ts'
import type { Project } from '#core/project.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { CaptureService } from './capture.ts'
import { backlogReason, type ProjectBacklog } from './project-backlog.ts'
import type { RefusedCounter } from './refused-counter.ts'
import { createUnavailable } from './unavailable.ts'

export interface ReplayServiceDependencies {
  /** By project API key; null when no project has it. May answer at once. */
  readonly findProject: (token: string) => MaybePromise<Project | null>
  /** `accept`: requests of unknown keys are answered like others and dropped. */
  readonly unknownKeys: 'reject' | 'accept'
  readonly isOverQuota: (project: Project, resource: QuotaResource) => boolean
  readonly keepRefused: CaptureService['keepRefused']
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly eventLog: EventLogWriter
  /** Without it a project may have any number of replays waiting. */
  readonly backlog?: ProjectBacklog
  /** Epoch-less, for how often a line is logged. */
  readonly monotonicNowMs: () => number
  readonly metrics: Metrics
  readonly logger: Logger
}

export type ReplayOutcome =
  /** Durable. */
  | { readonly kind: 'accepted' }
  /** Nothing is stored, and the client is to know. */
  | { readonly kind: 'over_quota' }
  | { readonly kind: 'unknown_project' }
  | { readonly kind: 'unfit'; readonly refusal: ReplayRefusal }
  /** Nothing, or after a timeout perhaps all, is stored; the same request may be sent again. */
  | { readonly kind: 'unavailable' }

export interface ReplayService {
  capture(request: ReplayRequest, receivedAtMs: number): Promise<ReplayOutcome>
}

/** What is looked for first is answered: the key, the quota, then the snapshots. Source: docs/wire/ingestion.md 1.7, 1.8. */
export function createReplayService(dependencies: ReplayServiceDependencies): ReplayService {
  const { eventLog, metrics, logger, monotonicNowMs } = dependencies
  const unavailable = createUnavailable({ what: 'replays', nowMs: monotonicNowMs, metrics, logger })
  const accepted = metrics.eventsAccepted.labels({ lane: 'replay' })

  return {
    async capture(request, receivedAtMs) {
      try {
        const project = await dependencies.findProject(request.token)
        if (project !== null) return await captureFor(project, request, receivedAtMs)
      } catch (error) {
        return unavailable(error)
      }
      metrics.eventsRefused.inc({ reason: 'unknown_api_key' })
      return { kind: dependencies.unknownKeys === 'reject' ? 'unknown_project' : 'accepted' }
    },
  }

  async function captureFor(project: Project, request: ReplayRequest, receivedAtMs: number): Promise<ReplayOutcome> {
    if (dependencies.isOverQuota(project, 'recordings')) {
      const reason = 'recordings_over_quota'
      metrics.eventsRefused.inc({ reason })
      dependencies.refused.count(project.id, reason, 1, () => ({ quota: project.quotas.recordings }))
      return { kind: 'over_quota' }
    }
    if (request.kind === 'unfit') {
      const { token, refusal, body, item } = request
      const field = refusedReplayFields[refusal]
      dependencies.keepRefused({ token, reason: refusal, field, body, item, lane: 'replay' }, receivedAtMs)
      return { kind: 'unfit', refusal }
    }
    atOnce(assignProject(request.record.bytes, project.id))
    const { backlog } = dependencies
    const units = backlog === undefined ? 0 : backlog.take(project.id, request.record)
    if (units === null) {
      metrics.eventsRefused.inc({ reason: backlogReason })
      return { kind: 'unavailable' }
    }
    let isStored = false
    try {
      await eventLog.append('main', request.record)
      isStored = true
    } finally {
      backlog?.settle(project.id, units, isStored)
    }
    accepted.inc()
    return { kind: 'accepted' }
  }
}
