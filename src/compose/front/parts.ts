// The parts from which a front is composed, and the subset that each feature needs, so that a process or a test can compose
// one feature alone.

import type { EventLogWriter } from '#ports/log/event-log.ts'
import type { ProjectStore } from '#ports/state/project-store.ts'
import type { HashKeyOverrideWriter } from '#ports/state/subject-store.ts'
import type { ThreadPool } from '#ports/thread-pool.ts'
import type { LiveEvents } from '#services/live/live-events.ts'
import type { DailySalts } from '#services/shared/daily-salts.ts'
import type { DecodeJobs } from '#wire/threads/decode-jobs.ts'
import type { FrontContext } from './context.ts'
import type { FrontCounters } from './counters.ts'
import type { FrontDefinitions } from './definitions.ts'
import type { FrontState } from './state.ts'
import type { FrontStores } from './stores.ts'

export interface FrontParts extends FrontContext {
  readonly eventLog: EventLogWriter
  readonly stores: FrontStores
  readonly counters: FrontCounters
  readonly definitions: FrontDefinitions
  readonly liveEvents: LiveEvents
  /** The name of the cookie of sessions. */
  readonly sessionCookie: string
  /** The salts for ids of visitors without cookies. */
  readonly salts: DailySalts
  readonly decodeThreads: ThreadPool<DecodeJobs>
}

/** What flags need: neither a log nor an event store, so a process without them can serve flags. */
export interface FlagParts extends FrontContext, Pick<FrontParts, 'definitions' | 'salts' | 'decodeThreads'> {
  readonly stores: {
    readonly state: Pick<FrontState, 'subjects' | 'loginWritesAtOnceMax'>
    /** Stores the hash keys that flags keep after log-ins, and finds the project of a personal key. */
    readonly management: HashKeyOverrideWriter & Pick<ProjectStore, 'findProject' | 'listProjects'>
    readonly payloadCipher: Pick<FrontStores['payloadCipher'], 'open'>
  }
  /**
   * `eventQuotas`, because responses about flags also tell pages whether they may send recordings, which depends on an
   * event quota.
   */
  readonly counters: Pick<FrontCounters, 'flagRequests' | 'eventQuotas'>
}

export interface CaptureParts
  extends FrontContext,
    Pick<FrontParts, 'eventLog' | 'definitions' | 'salts' | 'decodeThreads'> {
  readonly stores: Pick<FrontStores, 'management' | 'eventStore'>
  readonly counters: Pick<FrontCounters, 'eventQuotas' | 'refused'>
}

export interface ManagementParts
  extends FrontContext,
    Pick<FrontParts, 'definitions' | 'liveEvents' | 'sessionCookie'> {
  readonly stores: Pick<FrontStores, 'management' | 'eventStore' | 'logReader' | 'payloadCipher'>
}

export interface HealthParts extends FrontContext, Pick<FrontParts, 'eventLog' | 'definitions'> {
  readonly stores: Pick<FrontStores, 'state' | 'logReader' | 'logSpace'>
  readonly counters: Pick<FrontCounters, 'missingEvents'>
}

export interface EventsPortParts extends FrontContext, Pick<FrontParts, 'definitions'> {
  readonly stores: Pick<FrontStores, 'eventStore'>
}
