// What a front knows of events that the event store lost: the worker notes it in the state, whichever front is asked.

import type { EventStoreMarkStore } from '#ports/management-store.ts'
import { PortError } from '#ports/port-error.ts'
import type { Logger } from '#telemetry/log.ts'

export interface MissingEvents {
  /** As it was read last; 0 before. */
  spanCount(): number
  /** Ends the reading. */
  close(): Promise<void>
}

export function startMissingEvents(options: {
  readonly marks: Pick<EventStoreMarkStore, 'findEventStoreMark'>
  readonly logger: Logger
  readonly readMs: number
}): MissingEvents {
  const { marks, logger } = options
  let spanCount = 0
  let reading = read()
  const timer = setInterval(() => {
    reading = reading.then(read)
  }, options.readMs)
  timer.unref()

  async function read(): Promise<void> {
    try {
      spanCount = (await marks.findEventStoreMark())?.missing.length ?? 0
    } catch (cause) {
      if (!(cause instanceof PortError)) throw cause
      // An unreachable state is reported at a higher level by those who need it.
      logger.debug({ err: cause }, 'what the event store lost could not be read')
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
