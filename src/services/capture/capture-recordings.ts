// Accepts recording requests: finds the project, checks its quota, appends the record to the log and answers only when
// the log has it. Knows nothing of HTTP; `http/handlers/recordings.ts` turns outcomes into answers.

import {
  type RecordingRefusal,
  type RecordingRequest,
  refusedRecordingFields,
} from '#core/capture/prepare-recording.ts'
import type { QuotaResource } from '#core/capture/quota-resource.ts'
import { writeProjectIdIntoRecords } from '#core/log/record-codec.ts'
import type { Project } from '#core/project.ts'
import { releaseBytesMemory } from '#core/release-bytes.ts'
import type { EventLogAppender } from '#ports/log/event-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { CaptureService } from './capture.ts'
import { createOutageHandler } from './outage-handler.ts'
import { backlogReason, type ProjectBacklog } from './project-backlog.ts'
import type { RefusedCounter } from './refused-counter.ts'

export interface RecordingServiceOptions {
  /** Finds a project by its API key; null when no project has that key. */
  readonly findProject: (token: string) => Project | null
  /** `accept`: requests of unknown keys are answered like others and dropped. */
  readonly unknownKeys: 'reject' | 'accept'
  readonly isOverQuota: (project: Project, resource: QuotaResource) => boolean
  readonly keepRefused: CaptureService['keepRefused']
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly eventLog: EventLogAppender
  /** Limits how many recordings a project may have waiting; no limit when absent. */
  readonly backlog?: ProjectBacklog
  /** Milliseconds from an arbitrary start, to limit how often a line is logged. */
  readonly monotonicNowMs: () => number
  readonly metrics: Metrics
  readonly logger: Logger
}

export type RecordingOutcome =
  /** The recording is durable, or was dropped because its key is unknown. */
  | { readonly kind: 'accepted' }
  /** Nothing is stored, and the answer says so. */
  | { readonly kind: 'over_quota' }
  | { readonly kind: 'unknown_project' }
  | { readonly kind: 'unfit'; readonly refusal: RecordingRefusal }
  /** Nothing is stored, or after a timeout perhaps everything; the same request may be sent again. */
  | { readonly kind: 'unavailable' }

export type RecordingService = ReturnType<typeof createRecordingService>

/** The first failing check decides the answer: key, quota, then snapshots. Source: docs/wire/ingestion.md 1.7, 1.8. */
export function createRecordingService(options: RecordingServiceOptions) {
  const { eventLog, metrics, logger, monotonicNowMs } = options
  const unavailable = createOutageHandler({ what: 'recordings', nowMs: monotonicNowMs, metrics, logger })
  const accepted = metrics.eventsAccepted.labels({ lane: 'replay' })

  return {
    async capture(request: RecordingRequest, receivedAtMs: number): Promise<RecordingOutcome> {
      const project = options.findProject(request.token)
      if (project === null) {
        freeRecordBytes(request)
        metrics.eventsRefused.inc({ reason: 'unknown_api_key' })
        return { kind: options.unknownKeys === 'reject' ? 'unknown_project' : 'accepted' }
      }
      try {
        return await captureFor(project, request, receivedAtMs)
      } catch (error) {
        return unavailable(error)
      }
    },
  }

  async function captureFor(
    project: Project,
    request: RecordingRequest,
    receivedAtMs: number,
  ): Promise<RecordingOutcome> {
    if (options.isOverQuota(project, 'recordings')) {
      const reason = 'recordings_over_quota'
      freeRecordBytes(request)
      metrics.eventsRefused.inc({ reason })
      options.refused.count(project.id, reason, 1, () => ({ quota: project.quotas.recordings }))
      return { kind: 'over_quota' }
    }
    if (request.kind === 'unfit') {
      const { token, refusal, body, item } = request
      const field = refusedRecordingFields[refusal]
      options.keepRefused({ token, reason: refusal, field, body, item, lane: 'replay' }, receivedAtMs)
      return { kind: 'unfit', refusal }
    }
    writeProjectIdIntoRecords(request.record.bytes, project.id)
    const { backlog } = options
    const units = backlog === undefined ? 0 : backlog.take(project.id, request.record)
    if (units === null) {
      freeRecordBytes(request)
      metrics.eventsRefused.inc({ reason: backlogReason })
      return { kind: 'unavailable' }
    }
    let isStored = false
    try {
      await eventLog.append('live', request.record)
      isStored = true
    } finally {
      backlog?.settle(project.id, units, isStored)
    }
    accepted.inc()
    return { kind: 'accepted' }
  }
}

function freeRecordBytes(request: RecordingRequest): void {
  if (request.kind === 'prepared') releaseBytesMemory(request.record.bytes)
}
