// How `work` and `front` open their folder and stores. An unavailable store is logged as one line without a stack trace,
// since `serve` restarts the process until the store is back.

import type { Config } from '#config.ts'
import { PortError } from '#ports/port-error.ts'
import { acquireSharedDataLock } from '#processes/data-lock.ts'
import { exitAfterLogging, type Logger } from '#telemetry/log.ts'

/** Locks the data folder as a child of `serve`. Ends the process with exit code 1 if that fails. */
export async function lockDataFolderAsChild({ dataFolder }: Pick<Config, 'dataFolder'>, logger: Logger): Promise<void> {
  try {
    acquireSharedDataLock(dataFolder)
  } catch (cause) {
    await endProcess(logger, `the data folder ${dataFolder} cannot be locked: ${(cause as Error).message}`)
  }
}

/** @param open opens the stores. A PortError, for an unavailable store, exits with code 1; other errors are defects. */
export async function openOrEndProcess<Opened>(logger: Logger, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (cause) {
    if (!(cause instanceof PortError)) throw cause
    return endProcess(logger, cause.message)
  }
}

function endProcess(logger: Logger, reason: string): Promise<never> {
  logger.error(`this process cannot start: ${reason}`)
  return exitAfterLogging(logger, 1)
}
