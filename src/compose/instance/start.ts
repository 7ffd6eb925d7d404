// Prepares a start before anything serves: binds the log to the state and creates the first project.

import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Config } from '#config.ts'
import type { Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { ManagementStore } from '#ports/state/management-store.ts'
import type { ReturnedState } from '#ports/state/worker-state.ts'
import { checkFirstStart, completeFirstStart, type FirstStartResult } from '#services/manage/first-start.ts'
import { bindLog, findLogMismatch } from '#services/progress/bind-log.ts'
import type { Logger } from '#telemetry/log.ts'
import { openLogReader, prepareLog, readLogId } from '../log/log.ts'
import { describeStatePlace } from '../stores/state.ts'

/**
 * Creates the first project and keys if they are missing.
 * @param beforeKeys called before keys are created; not called if no keys are missing.
 * @throws with a message for the operator.
 */
export function bootstrapInstance(
  config: Config,
  clock: Clock,
  management: ManagementStore,
  beforeKeys?: () => void,
): Promise<FirstStartResult> {
  const { projectKey, personalKey } = config
  return completeFirstStart({
    management,
    clock,
    newUuid: randomUUID,
    randomBytes,
    projectKey,
    personalKey,
    beforeKeys,
  })
}

/** Refuses what `bootstrap` would refuse, before anything is bound or created. @throws with a message for the operator. */
export function checkBootstrap(config: Config, management: ManagementStore): Promise<void> {
  return checkFirstStart({ management, projectKey: config.projectKey })
}

/**
 * @returns one line for the operator if the data folder's log belongs to another state.
 * @throws like `bindLog`.
 */
export async function bindLogToState(
  config: Config,
  logger: Logger,
  management: ManagementStore,
): Promise<Result<null, string>> {
  return bindLog({
    management,
    ...prepareLog(config),
    host: hostname(),
    statePlace: await describeStatePlace(config),
    newUuid: randomUUID,
    warn: line => logger.warn(line),
  })
}

/**
 * Checks whether a state that was unavailable and came back still belongs to the log in the data folder, which was bound
 * before.
 * @returns the reason if it does not, as the rest of a sentence that begins with the state; null if it does.
 * @throws as reading the log does.
 */
export async function checkStateAfterOutage(config: Config, found: ReturnedState): Promise<string | null> {
  const reader = openLogReader(config)
  try {
    return await findLogMismatch(found, {
      id: readLogId(config),
      streams: (await reader.listStreams()).map(({ stream }) => stream),
      endOffset: async (stream, position) => (await reader.readStreamStatus(stream, position)).endOffset,
    })
  } finally {
    await reader.close()
  }
}
