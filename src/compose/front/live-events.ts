// Composes the live view of a front: the service over the embedded log, with the messages of the wire.

import { liveEventsPerSecondMax } from '#http/management/queries/live-events.ts'
import type { EventLogReader } from '#ports/log/event-log.ts'
import { createLiveEvents, type LiveEvents } from '#services/live/live-events.ts'
import { liveMessages } from '#wire/live/live-events.ts'
import type { FrontContext } from './context.ts'

/** Per front. Each watcher may hold some 300 KiB while its client is slow; one project must leave some for others. */
const watcherLimits = { watchersMax: 300, watchersPerProjectMax: 100 }

export function composeLiveEvents(
  { clock, metrics, logger, monotonicNowMs, startTimer, startTimeout }: FrontContext,
  log: EventLogReader,
): LiveEvents {
  return createLiveEvents({
    ...{ log, metrics, logger, monotonicNowMs, startTimer, startTimeout },
    ...watcherLimits,
    eventsPerSecondMax: liveEventsPerSecondMax,
    messages: liveMessages,
    nowMs: clock.nowMs,
    workedMs: () => {
      const { user, system } = process.threadCpuUsage()
      return (user + system) / 1_000
    },
  })
}
