// The parts from which the features of a front are composed. Each feature takes all of them, so that a test can start
// one feature with its own stores and with the same wiring as an instance.

import type { EventLogWriter } from '#ports/log/event-log.ts'
import type { ThreadPool } from '#ports/thread-pool.ts'
import type { LiveEvents } from '#services/live/live-events.ts'
import type { DailySalts } from '#services/shared/daily-salts.ts'
import type { DecodeJobs } from '#wire/threads/decode-jobs.ts'
import type { FrontContext } from './context.ts'
import type { FrontCounters } from './counters.ts'
import type { FrontDefinitions } from './definitions.ts'
import type { FrontStores } from './stores.ts'

export interface FrontParts extends FrontContext {
  readonly eventLog: EventLogWriter
  readonly stores: FrontStores
  readonly counters: FrontCounters
  readonly definitions: FrontDefinitions
  readonly liveEvents: LiveEvents
  /** Of visitors without cookies. */
  readonly salts: DailySalts
  readonly decodeThreads: ThreadPool<DecodeJobs>
}
