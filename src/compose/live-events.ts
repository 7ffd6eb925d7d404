// The live view of a front: the service over the embedded log, in the words of the wire.

import { liveEventsPerSecondMax } from '#http/management/live-events.ts'
import type { EventLogReader } from '#ports/event-log.ts'
import { createLiveEvents, type LiveEvents } from '#services/live/live-events.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Metrics } from '#telemetry/metrics.ts'
import { liveMessages } from '#wire/live/live-events.ts'

/** Per front: each may hold some 300 KiB while its client is slow. One project leaves room for others. */
const watcherLimits = { watchersMax: 300, watchersPerProjectMax: 100 }

export function composeLiveEvents(deps: {
  readonly log: EventLogReader
  readonly nowMs: () => number
  readonly metrics: Metrics
  readonly logger: Logger
}): LiveEvents {
  return createLiveEvents({
    ...deps,
    ...watcherLimits,
    eventsPerSecondMax: liveEventsPerSecondMax,
    messages: liveMessages,
    monotonicNowMs: () => performance.now(),
    workedMs: () => {
      const { user, system } = process.threadCpuUsage()
      return (user + system) / 1_000
    },
    startTimer: (callback, everyMs) => {
      const timer = setInterval(callback, everyMs).unref()
      return { cancel: () => clearInterval(timer) }
    },
    startTimeout: (callback, afterMs) => {
      const timer = setTimeout(callback, afterMs).unref()
      return { cancel: () => clearTimeout(timer) }
    },
  })
}
