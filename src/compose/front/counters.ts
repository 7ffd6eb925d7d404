// Starts the counters that a front keeps in memory, and writes to the state or reads from it every few seconds, so that no
// request waits for the state.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ManagementStore } from '#ports/state/management-store.ts'
import { type EventQuotas, startEventQuotaTracker } from '#services/capture/event-quotas.ts'
import { type RefusedCounter, startRefusedItemCounter } from '#services/capture/refused-counter.ts'
import { type FlagRequestCounter, startFlagRequestCounter } from '#services/flags/flag-request-counter.ts'
import { type SecretUses, startSecretUseRecorder } from '#services/manage/secret-uses.ts'
import { type MissingEvents, startMissingEventsReader } from '#services/progress/missing-events.ts'
import type { FrontContext } from './context.ts'

const periods = {
  /** A front knows other fronts' requests within twice this time, so quotas are right within 10 s. */
  flagRequestFlushMs: 5_000,
  /** The worker counts events every 10 s, so event quotas take effect within 20 s. */
  eventQuotaReadMs: 5_000,
  refusedFlushMs: 5_000,
  /** Uses of keys and sessions are written this long after the first use, when their requests have been answered. */
  keyUsesDelayMs: 1_000,
  /** How often to read what the worker found; it looks for missing event rows every 10 s. */
  missingEventsReadMs: 5_000,
}
/** How long a stop waits for counts to be written: a database that hangs may cost the last counts, but not the stop. */
const lastFlushMsMax = 1_500

export interface FrontCounters {
  readonly flagRequests: FlagRequestCounter
  readonly eventQuotas: EventQuotas
  readonly refused: RefusedCounter
  readonly keyUses: SecretUses
  readonly sessionUses: SecretUses
  readonly missingEvents: MissingEvents
}

/** @param over for tests: other periods. */
export function startFrontCounters(
  { clock, logger, metrics }: Pick<FrontContext, 'clock' | 'logger' | 'metrics'>,
  management: ManagementStore,
  opened: AsyncDisposableStack,
  over: Partial<typeof periods> = {},
): FrontCounters {
  const { flagRequestFlushMs, eventQuotaReadMs, refusedFlushMs, keyUsesDelayMs, missingEventsReadMs } = {
    ...periods,
    ...over,
  }
  const recording = { clock, logger, metrics, delayMs: keyUsesDelayMs }
  const counters = {
    flagRequests: startFlagRequestCounter({ usage: management, clock, logger, flushMs: flagRequestFlushMs }),
    eventQuotas: startEventQuotaTracker({ usage: management, clock, logger, readMs: eventQuotaReadMs }),
    refused: startRefusedItemCounter({ store: management, clock, logger, flushMs: refusedFlushMs }),
    keyUses: startSecretUseRecorder({
      save: uses => management.savePersonalKeyUses(uses),
      what: 'personal keys',
      ...recording,
    }),
    sessionUses: startSecretUseRecorder({
      save: uses => management.saveSessionUses(uses),
      what: 'sessions',
      ...recording,
    }),
    missingEvents: startMissingEventsReader({ marks: management, logger, readMs: missingEventsReadMs }),
  }
  opened.defer(async () => {
    const late = sleep(lastFlushMsMax, 'late', { ref: false })
    const written = Promise.all(Object.values(counters).map(counter => counter.close()))
    if ((await Promise.race([written, late])) === 'late')
      logger.warn(
        'cannot save the last counts of flag requests, refused events and uses of keys and sessions before shutdown',
      )
  })
  return counters
}
