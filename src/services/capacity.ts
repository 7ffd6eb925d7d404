// Stops taking events before the disk is full, and takes them again by itself: a log that cannot grow would otherwise
// fail in the middle of a write, and flags need the disk's last bytes too.

import type { LogLane } from '#core/events/captured-event.ts'
import type { EncodedRecords, EventLogWriter } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'

export interface Capacity {
  /** `ok`, `disk_low` while too little is free, `log_full` or `log_unavailable` after an append failed, until one succeeds. */
  state(): string
  close(): void
}

export interface CapacityOptions {
  readonly log: EventLogWriter
  /** Bytes free where the log lives. */
  readonly freeBytes: () => Promise<number>
  readonly freeBytesMin: number
  readonly checkEveryMs: number
  readonly logger: Logger
}

/** The log behind a guard, and what the guard says of it. */
export function guardCapacity(options: CapacityOptions): { log: EventLogWriter; capacity: Capacity } {
  let isDiskLow = false
  let lastFailure: string | null = null

  const check = async () => {
    try {
      const free = await options.freeBytes()
      const isLowNow = free < options.freeBytesMin
      if (isLowNow !== isDiskLow) {
        const message = isLowNow
          ? 'the disk is nearly full: events are refused with 503'
          : 'the disk has room again: events are taken'
        options.logger[isLowNow ? 'error' : 'info']({ freeBytes: free, freeBytesMin: options.freeBytesMin }, message)
      }
      isDiskLow = isLowNow
    } catch (cause) {
      options.logger.warn({ err: cause }, 'free disk space could not be read')
    }
  }
  void check()
  const timer = setInterval(() => void check(), options.checkEveryMs)
  timer.unref()

  const log: EventLogWriter = {
    append: async (lane: LogLane, records: EncodedRecords) => {
      if (isDiskLow) throw new PortError('event-log', 'full')
      try {
        await options.log.append(lane, records)
        lastFailure = null
      } catch (cause) {
        lastFailure = cause instanceof PortError && cause.code === 'full' ? 'log_full' : 'log_unavailable'
        throw cause
      }
    },
    close: () => options.log.close(),
  }
  return {
    log,
    capacity: { state: () => (isDiskLow ? 'disk_low' : (lastFailure ?? 'ok')), close: () => clearInterval(timer) },
  }
}
