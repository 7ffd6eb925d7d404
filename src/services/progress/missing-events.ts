// Tells each front which events the event store lost: the worker records them in the state store, and fronts read them.

import { PortError } from '#ports/port-error.ts'
import type { EventStoreMarks } from '#ports/state/worker-state.ts'
import type { Logger } from '#telemetry/log.ts'

export interface MissingEvents {
  /** How many spans of events are missing, as last read; 0 before the first read. */
  spanCount(): number
  /** Stops reading. */
  close(): Promise<void>
}

export function startMissingEventsReader(options: {
  readonly marks: Pick<EventStoreMarks, 'findEventStoreMark'>
  readonly logger: Logger
  readonly readMs: number
}): MissingEvents {
  const { marks, logger } = options
  let spanCount = 0
  let reading = readSpanCount()
  const timer = setInterval(() => {
    reading = reading.then(readSpanCount)
  }, options.readMs)
  timer.unref()

  async function readSpanCount(): Promise<void> {
    try {
      spanCount = (await marks.findEventStoreMark())?.missing.length ?? 0
    } catch (cause) {
      if (!(cause instanceof PortError)) throw cause
      // Only a debug line: components that need the state store report at a higher level that it cannot be reached.
      logger.debug({ err: cause }, 'cannot read what the event store lost')
    }
  }

  return {
    spanCount: () => spanCount,
    close: async () => {
      clearInterval(timer)
      await reading
    },
  }
}
