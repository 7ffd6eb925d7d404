// What a start needs before anything serves: the state at its newest schema, and the first project.

import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import {
  hasLogSegments,
  readLogIdentity,
  replaceLogIdentity,
  tidyLanes,
  writeLogIdentity,
} from '#adapters/sqlite-log/log-identity.ts'
import { openSqliteLogReader } from '#adapters/sqlite-log/sqlite-log-reader.ts'
import type { Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { ManagementStore, ReturnedState } from '#ports/management-store.ts'
import { type Bootstrapped, checkFirstStart, ensureFirstStart } from '#services/manage/first-start.ts'
import { bindLog, whyNotOurs } from '#services/processing/bind-log.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Config } from '../config.ts'
import { statePlaceOf } from './state.ts'
import { logFolder } from './stores.ts'

export { type InstanceState, openInstanceState, openManagement, type StateWriter } from './state.ts'
export type { Bootstrapped }

/** The first project and keys. @throws with a message for people. */
export function bootstrap(config: Config, clock: Clock, management: ManagementStore): Promise<Bootstrapped> {
  const { projectKey, personalKey } = config
  return ensureFirstStart({ management, clock, newUuid: randomUUID, randomBytes, projectKey, personalKey })
}

/** What `bootstrap` would refuse, before anything is bound or made. @throws with a message for people. */
export function checkBootstrap(config: Config, management: ManagementStore): Promise<void> {
  return checkFirstStart({ management, projectKey: config.projectKey })
}

/** @returns one line for a person when the log in the data folder belongs to another state. @throws as `bindLog` does. */
export async function bindOwnLog(
  config: Config,
  logger: Logger,
  management: ManagementStore,
): Promise<Result<null, string>> {
  const folder = resolve(logFolder(config))
  tidyLanes(folder)
  return bindLog({
    management,
    folder,
    log: {
      id: readLogIdentity(folder),
      hasSegments: hasLogSegments(folder),
      writeId: id => writeLogIdentity(folder, id),
      replaceId: id => replaceLogIdentity(folder, id),
    },
    host: hostname(),
    statePlace: await statePlaceOf(config),
    newUuid: randomUUID,
    warn: line => logger.warn(line),
  })
}

/**
 * Whether a state that was away and came back still belongs to the log in the data folder, which was bound before.
 * @returns what stands against it, as the rest of a sentence about the state; null when nothing does.
 * @throws as reading the log does.
 */
export async function judgeReturnedState(config: Config, found: ReturnedState): Promise<string | null> {
  const folder = resolve(logFolder(config))
  const reader = openSqliteLogReader({ folder })
  try {
    return await whyNotOurs(found, {
      id: readLogIdentity(folder),
      endOffset: async (lane, position) => (await reader.status(lane, position)).endOffset,
    })
  } finally {
    await reader.close()
  }
}
