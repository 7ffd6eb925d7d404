// What a start needs before anything serves: the state at its newest schema, the first project, and what the engine's
// child is told.

import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { removeEngineEndpoint } from '#adapters/clickhouse-embedded/engine-endpoint.ts'
import { prepareEngine } from '#adapters/clickhouse-embedded/start-engine.ts'
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
import { bindLog, whyNotOurs } from '#services/bind-log.ts'
import { type Bootstrapped, checkFirstStart, ensureFirstStart } from '#services/first-start.ts'
import type { Logger } from '#telemetry/log.ts'
import type { Config } from '../config.ts'
import { removeAbandonedFreezes } from './held-freezes.ts'
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

/** Arguments of the child that runs the embedded engine; new port and passwords with each call. */
export async function prepareEngineChild(config: Config): Promise<readonly string[]> {
  removeAbandonedFreezes(config.dataFolder)
  return (await prepareEngine(config.dataFolder, { queryTimeoutSeconds: config.queryTimeoutSeconds })).args
}

/** Call it when the engine's process has ended: no client may connect to the port that it had. */
export function forgetEngine(config: Config, logger: Logger): void {
  try {
    removeEngineEndpoint(config.dataFolder)
  } catch (err) {
    // A disk that is read-only. Flags go on; whoever connects to the port has to prove that he is the engine.
    logger.warn({ err }, 'the file that says where the embedded event store listens cannot be removed')
  }
}
