// Puts what is refused into the log, so that its project finds it, but only so much of it that a broken client cannot fill the
// log with useless data; the rest is counted. No request waits for this.

import type { RefusedItem } from '#core/capture/incoming-event.ts'
import { keptItem } from '#core/capture/reject-body.ts'
import {
  type CapturedReject,
  importWithoutJob,
  type Lane,
  logLaneOf,
  type RejectedBody,
} from '#core/events/captured-event.ts'
import { type EncodedRecords, RecordEncoder } from '#core/log/record-codec.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import type { Project } from '#core/project.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventLogWriter } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import type { RefusedCounter } from './refused-counter.ts'
import { createRejectLimiter } from './reject-limiter.ts'

export interface RejectKeeperDependencies {
  readonly findProject: (token: string) => MaybePromise<Project | null>
  readonly refused: Pick<RefusedCounter, 'count'>
  readonly eventLog: EventLogWriter
  readonly clock: Clock
  readonly metrics: Metrics
  readonly logger: Logger
}

/** A request that never came to its events. */
export interface RefusedInput {
  /** The key it seems to name, blanks around it and all, or null. */
  readonly token: string | null
  /** A code of docs/wire/errors.md. */
  readonly reason: string
  readonly field: string
  /** What was sent, cut for the reject store. */
  readonly body: RejectedBody
  /** How many events the request has, where they could be counted. */
  readonly eventCount?: number
  /** The one event it holds; absent when it has several, or when nothing of it could be read. */
  readonly item?: RefusedItem
  /** It says that it is an import. */
  readonly historicalMigration?: boolean
  /** Where it would have gone, when its path alone says that. */
  readonly lane?: Lane
}

export interface RejectKeeper {
  /** How many of `count` rejects may be kept now. */
  grant(projectId: number, count: number): number
  /** @param rejects of one request, one at least: all of them go where its events go. */
  append(project: Project, rejects: readonly CapturedReject[]): Promise<void>
  /** Counts a refused request and keeps it: its client has the refusal, and one that is lost is counted. */
  keep(project: Project, input: RefusedInput, of: RefusedOf): void
  /** The same for a key that may belong to no project. Never throws. */
  keepForKey(token: string, input: RefusedInput, receivedAtMs: number): Promise<void>
  /** Counts events of which nothing is kept. Never throws. */
  countForKey(token: string, reason: string, count: number): Promise<void>
}

export interface RefusedOf {
  /** Instead of the input's; asked for only when it is kept. */
  readonly body: () => RejectedBody
  readonly historicalMigration: boolean
  readonly receivedAtMs: number
}

export function createRejectKeeper(dependencies: RejectKeeperDependencies): RejectKeeper {
  const { eventLog, clock, refused } = dependencies
  const limiter = createRejectLimiter()

  return {
    grant: (projectId, count) => limiter.take(projectId, count, clock.nowMs()),
    append: (project, rejects) => eventLog.append(logLaneOf(rejects[0]!.lane), encodeRejects(project, rejects)),
    keep,
    async countForKey(token, reason, count) {
      try {
        const project = await dependencies.findProject(token.trim())
        if (project !== null) refused.count(project.id, reason, count)
      } catch (error) {
        countFailure(error, dependencies)
      }
    },
    async keepForKey(token, input, receivedAtMs) {
      try {
        const project = await dependencies.findProject(token.trim())
        const { historicalMigration = false } = input
        if (project !== null) keep(project, input, { body: () => input.body, historicalMigration, receivedAtMs })
      } catch (error) {
        countFailure(error, dependencies)
      }
    },
  }

  function keep(project: Project, input: RefusedInput, { body, historicalMigration, receivedAtMs }: RefusedOf): void {
    const { reason, eventCount = 1, item = unreadItem } = input
    const granted = limiter.take(project.id, 1, clock.nowMs())
    refused.count(project.id, reason, eventCount - granted)
    if (granted === 0) return
    const lane = historicalMigration ? 'historical' : 'main'
    const kept = body()
    const reject: CapturedReject = {
      projectId: project.id,
      token: project.apiToken,
      lane: input.lane ?? lane,
      historicalMigration,
      importJobId: historicalMigration ? importWithoutJob : 0,
      receivedAtMs,
      capturedAtMs: receivedAtMs,
      reason,
      field: input.field,
      ...keptItem(item),
      ...(typeof kept === 'string' ? { body: kept } : { body: kept.text, source: kept.source }),
    }
    eventLog.append(lane, encodeRejects(project, [reject])).catch(error => {
      refused.count(project.id, reason, 1)
      countFailure(error, dependencies)
    })
  }
}

const unreadItem: RefusedItem = { uuid: '', name: '', distinctId: '' }

function countFailure(error: unknown, { metrics, logger }: Pick<RejectKeeperDependencies, 'metrics' | 'logger'>): void {
  const known = error instanceof PortError
  metrics.dependencyFailures.inc({ port: known ? error.port : 'unknown', code: known ? error.code : 'unavailable' })
  if (!known) logger.error({ err: error }, 'a refused request could not be kept')
}

function encodeRejects(project: Project, rejects: readonly CapturedReject[]): EncodedRecords {
  const encoder = new RecordEncoder()
  for (const reject of rejects) encoder.addReject({ ...reject, projectId: project.id })
  return encoder.finish()
}
