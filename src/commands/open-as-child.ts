// How `work` and `front` open what they work on. A store or a folder that is away is one line, not the trace of a defect:
// `serve` starts the process again and again until it is back.

import type { Config } from '#config.ts'
import { PortError } from '#ports/port-error.ts'
import { shareDataLock } from '#processes/data-lock.ts'
import type { Logger } from '#telemetry/log.ts'

/** Locks the data folder as a child of `serve` does. Ends the process with exit code 1 when that fails. */
export function lockAsChild({ dataFolder }: Pick<Config, 'dataFolder'>, logger: Logger): void {
  try {
    shareDataLock(dataFolder)
  } catch (cause) {
    end(logger, `the data folder ${dataFolder} cannot be locked: ${(cause as Error).message}`)
  }
}

/** @param open throws a PortError when a store is away: the process ends with exit code 1. Anything else is a defect. */
export async function openAsChild<Opened>(logger: Logger, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (cause) {
    if (!(cause instanceof PortError)) throw cause
    return end(logger, cause.message)
  }
}

function end(logger: Logger, reason: string): never {
  logger.error(`this process cannot start: ${reason}`)
  process.exit(1)
}
